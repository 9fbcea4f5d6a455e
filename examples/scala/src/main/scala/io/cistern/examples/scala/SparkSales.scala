package io.cistern.examples.scala

import io.cistern.examples.spark.columns.{GpuColumns, KeyedSums}
import org.apache.spark.sql.{DataFrame, SparkSession}
import org.apache.spark.sql.functions.col

/** Sums sales by article on the executors' devices: the Scala form of Java's `SalesByArticle`.
  *
  * `spark-submit` runs it on a cluster. Without a cluster it runs in this process on the simulated GPU.
  */
object SparkSales:
  def main(arguments: Array[String]): Unit =
    val session = open()
    try
      val sales = session.range(0, 10000, 1, 2).selectExpr("id % 10 as article", "id as amount")
      println(s"sums of articles: ${sums(sales).collect().map(_.getLong(1)).mkString(", ")}")
    finally session.stop()

  private def open(): SparkSession =
    val builder = SparkSession.builder().appName("sales")
    if System.getProperty("spark.master") == null then
      builder
        .master("local[2]")
        .config("spark.plugins", "io.cistern.spark.CisternPlugin")
        .config("spark.cistern.driver", "simulated")
    builder.getOrCreate()

  private def sums(sales: DataFrame): DataFrame =
    val parts = GpuColumns.map(sales, KeyedSums.SCHEMA, KeyedSums.atLeast(0))
    GpuColumns.map(parts.repartitionByRange(2, col("key")), KeyedSums.SCHEMA, KeyedSums.merging())
