package io.cistern.handles.cublas;

import java.util.List;

/// Finds the plan for a call among those of a handle, or creates one. A search takes longer than a call, so
/// each handle keeps the plans that it used last.
final class MatmulPlans {
    /// The most plans of a handle.
    static final int MAX_PLANS = 64;

    private final CublasLtFunctions functions;

    MatmulPlans(CublasLtFunctions functions) {
        this.functions = functions;
    }

    /// Returns a plan with its bias set. Makes no garbage if the handle had the plan.
    MatmulPlan find(CublasLtHandle handle, Gemm gemm, Epilogue epilogue, long a, long b, long c, long bias) {
        List<MatmulPlan> plans = handle.plans;
        int last = plans.size() - 1;
        for (int i = last; i >= 0; i--) {
            MatmulPlan plan = plans.get(i);
            if (plan.fits(handle, gemm, epilogue, a, b, c, bias)) {
                if (i != last) {
                    plans.add(plans.remove(i));
                }
                plan.setBias(handle, bias);
                return plan;
            }
        }
        return add(handle, MatmulPlan.of(functions, handle, gemm, epilogue, Alignments.of(a, b, c, bias), bias));
    }

    private static MatmulPlan add(CublasLtHandle handle, MatmulPlan plan) {
        if (handle.plans.size() >= MAX_PLANS) {
            handle.plans.removeFirst().destroy();
        }
        handle.plans.add(plan);
        return plan;
    }

    /// Destroys all plans of a handle.
    static void destroyAll(CublasLtHandle handle) {
        handle.plans.forEach(MatmulPlan::destroy);
        handle.plans.clear();
    }
}
