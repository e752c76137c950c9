#!/usr/bin/env bash
# A column of formulas that polars or pandas writes to Excel is read back as zeros by all, until Excel has opened it.
#
# Seen with: xlsxwriter 3.3.1, openpyxl 3.1.5, polars 2.1.0, fastexcel 0.21.0, pandas 3.1.1, python-calamine 0.9.1,
# CPython 3.11.
#
# A cell has a formula and the value that it last had, and readers take the value. XlsxWriter, which both libraries
# write with, does not compute and stores 0. Such a column looks like one of real numbers. openpyxl stores no value, so
# that the same formulas are missing there. Both are right in Excel, which computes at once, and in a file that it has
# saved.
#
# Output seen:
#   written by polars, read by openpyxl, calamine and polars: [0, 0, 0] [0, 0, 0] [0, 0, 0]
#   written by pandas, read by openpyxl, calamine and polars: [0, 0, 0] [0, 0, 0] [0, 0, 0]
#   written by openpyxl, read by openpyxl, calamine and polars: [nan, nan, nan] [nan, nan, nan] [None, None, None]
#
# Fails if any of these lines differs.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
sed -n '/^# Output seen:/,/^#$/s/^#   //p' "$0" > "$folder/seen"
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check \
  xlsxwriter==3.3.1 openpyxl==3.1.5 polars==2.1.0 fastexcel==0.21.0 pandas==3.1.1 python-calamine==0.9.1

cat > formulas.py <<'PYTHON'
import openpyxl
import pandas as pd
import polars as pl

FORMULAS = [f"=A{row}*2" for row in (2, 3, 4)]


def by_openpyxl(file):
    book = openpyxl.Workbook()
    book.active.append(["price", "double"])
    for price, formula in zip([1, 2, 3], FORMULAS, strict=True):
        book.active.append([price, formula])
    book.save(file)


def by_pandas(file):
    table = pd.DataFrame({"price": [1, 2, 3], "double": FORMULAS})
    table.to_excel(file, index=False, engine="xlsxwriter")


def by_polars(file):
    pl.DataFrame({"price": [1, 2, 3]}).write_excel(file, formulas={"double": "=[@price]*2"})


for write in (by_polars, by_pandas, by_openpyxl):
    write("prices.xlsx")
    found = [pd.read_excel("prices.xlsx", engine=engine)["double"].tolist() for engine in ("openpyxl", "calamine")]
    found.append(pl.read_excel("prices.xlsx")["double"].to_list())
    print(f"written {write.__name__.replace('_', ' ')}, read by openpyxl, calamine and polars:", *found)
PYTHON

venv/bin/python formulas.py | tee found
diff seen found
