package io.cistern.examples.scala

import io.cistern.spark.columns.{GpuColumns, KeyedSums}
import org.apache.spark.sql.{DataFrame, SparkSession}
import org.apache.spark.sql.functions.col

/** Sums sales by article on the executors' devices: the Scala form of Java's `SalesByArticle`.
  *
  * Runs on the simulated GPU unless the configuration says otherwise.
  */
object SparkSales:
  def main(arguments: Array[String]): Unit =
    val session = SparkSession
      .builder()
      .appName("sales")
      .master("local[2]")
      .config("spark.plugins", "io.cistern.spark.CisternPlugin")
      .config("spark.cistern.driver", "simulated")
      .getOrCreate()
    try
      val sales = session.range(0, 10000, 1, 2).selectExpr("id % 10 as article", "id as amount")
      println(s"sums of articles: ${sums(sales).collect().map(_.getLong(1)).mkString(", ")}")
    finally session.stop()

  private def sums(sales: DataFrame): DataFrame =
    val parts = GpuColumns.map(sales, KeyedSums.SCHEMA, KeyedSums.atLeast(0))
    GpuColumns.map(parts.repartitionByRange(2, col("key")), KeyedSums.SCHEMA, KeyedSums.merging())
