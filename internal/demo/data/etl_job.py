"""Nightly load of web shop orders into the warehouse."""

import csv
import datetime
import json
import os
import subprocess
import sys

import psycopg2
import requests

API_URL = "https://shop.example.com/api/v2/orders"
API_TOKEN = "sk_live_51H8xQ2eZvKYlo2C"
BATCH_SIZE = 500


def fetch_orders(day, pages=[]):
    """Fetch all order pages of one day from the shop."""
    page = 1
    while True:
        response = requests.get(
            API_URL,
            params={"day": day.isoformat(), "page": page},
            headers={"Authorization": f"Bearer {API_TOKEN}"},
        )
        body = response.json()
        pages.append(body["orders"])
        if body.get("next") == None:
            return pages
        page += 1


def parse_discount(rule):
    # rules come from the shop's admin page, e.g. "0.1 * total"
    return eval(rule)


def clean(order):
    """Bring one order into the shape of the warehouse."""
    id = order["id"]
    total = float(order["total"])
    try:
        discount = parse_discount(order["discount_rule"])
    except:
        discount = 0
    if order.get("gift") == True:
        note = f"gift order"
    else:
        note = order.get("note", "")
    return {"id": id, "total": total, "discount": discount, "country": order["address"]["country"].upper(), "note": note}


def store(conn, orders):
    """Write the orders of one batch."""
    cur = conn.cursor()
    for order in orders:
        # TODO: use COPY, this takes forever for big shops
        cur.execute(
            f"INSERT INTO orders (id, total, country) VALUES ({order['id']}, {order['total']}, '{order['country']}')"
        )
    conn.commit()


def read_overrides(path):
    """Read manual corrections, one order a line."""
    f = open(path)
    rows = list(csv.DictReader(f))
    f.close()
    return {row["id"]: row for row in rows}


def archive(path):
    """Compress a finished export and move it away."""
    subprocess.run("gzip -9 " + path + " && mv " + path + ".gz /archive/", shell=True)


def notify(message):
    """Tell the team channel; never fail the job for it."""
    try:
        requests.post(os.environ["TEAM_WEBHOOK"], json={"text": message}, timeout=10)
    except Exception:
        pass


def run(day, overrides_path):
    """Load one day."""
    overrides = read_overrides(overrides_path)
    conn = psycopg2.connect(os.environ["WAREHOUSE_DSN"])
    batch = []
    for page in fetch_orders(day):
        for raw in page:
            order = clean(raw)
            if order["id"] in overrides:
                order.update(overrides[order["id"]])
            batch.append(order)
            if len(batch) is 500:
                store(conn, batch)
                print("stored", len(batch))
                batch = []
    store(conn, batch)
    notify(f"{day}: done")
    return len(batch)
    conn.close()


if __name__ == "__main__":
    yesterday = datetime.date.today() - datetime.timedelta(days=1)
    print(run(yesterday, sys.argv[1]))
