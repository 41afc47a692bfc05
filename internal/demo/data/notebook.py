# Databricks notebook source
# MAGIC %md
# MAGIC # Receita por região
# MAGIC Consolida pedidos e devoluções e publica a tabela `gold.receita_regiao`.

# COMMAND ----------

from pyspark.sql import functions as F
from pyspark.sql.types import StringType
from pyspark.sql.window import Window

REGIOES = ["norte", "nordeste", "centro-oeste", "sudeste", "sul"]
MES = dbutils.widgets.get("mes")

# COMMAND ----------

pedidos = (
    spark.read.option("header", "true")
    .option("inferSchema", "true")
    .csv("/mnt/raw/pedidos/2026/*.csv")
    .filter(F.col("status") != "cancelado")
)
clientes = spark.table("silver.clientes")
devolucoes = spark.sql(f"SELECT * FROM silver.devolucoes WHERE mes = '{MES}'")

# COMMAND ----------

# quantos pedidos temos?
print("pedidos:", pedidos.count())
display(pedidos)

# COMMAND ----------

@F.udf(StringType())
def normaliza_regiao(valor):
    if valor == None:
        return "desconhecida"
    return valor.strip().lower()


vendas = (
    pedidos.join(clientes, "cliente_id")
    .withColumn("regiao", normaliza_regiao(F.col("uf_nome")))
    .cache()
)

# COMMAND ----------

resumo = {}
for regiao in REGIOES:
    parte = vendas.filter(F.col("regiao") == regiao)
    resumo[regiao] = parte.count()
    display(parte.groupBy("produto").agg(F.sum("valor").alias("receita")))

# COMMAND ----------

for coluna in ["valor", "frete", "desconto"]:
    vendas = vendas.withColumn(coluna, F.col(coluna).cast("decimal(18,2)"))

# COMMAND ----------

# clientes sem devolução: cruza tudo e filtra depois
pares = vendas.crossJoin(devolucoes).filter(F.col("vendas.pedido_id") == F.col("devolucoes.pedido_id"))
linhas = pares.collect()
ids_devolvidos = {linha["pedido_id"] for linha in linhas}

# COMMAND ----------

pdf = vendas.toPandas()
receita = pdf[~pdf["pedido_id"].isin(ids_devolvidos)].groupby("regiao")["valor"].sum()
print(receita)

# COMMAND ----------

try:
    final = spark.createDataFrame(receita.reset_index())
    final.coalesce(1).write.mode("overwrite").saveAsTable("gold.receita_regiao")
except Exception:
    pass

# COMMAND ----------

# TODO: agendar depois do fechamento
pedidos.write.mode("append").saveAsTable("silver.pedidos_hist")
