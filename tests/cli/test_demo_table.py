"""The table of the demonstration has what its module says: gaps, two currencies, a leak, and ids in no order."""

import numpy as np
import pytest

import rankwise as rw
from rankwise.cli import demo_table


@pytest.fixture(scope="module")
def table():
    return demo_table.shop_table(60, 25, 3)


def test_the_same_seed_gives_the_same_table(table):
    again = demo_table.shop_table(60, 25, 3)
    assert table == again
    assert table != demo_table.shop_table(60, 25, 4)


def test_rows_are_mixed_and_document_ids_are_unique(table):
    query = table[demo_table.QUERY]
    assert len(np.unique(query)) == 60
    assert np.count_nonzero(query[1:] != query[:-1]) > len(query) / 2
    assert len(np.unique(table[demo_table.DOCUMENT])) == len(table)


def test_prices_have_two_currencies_and_some_cells_are_empty(table):
    assert {"$" in one for one in table["price"]} == {True, False}
    assert 0 < np.mean(table["stars"] == "") < 0.3


def test_the_leak_orders_documents_as_the_label_does(table):
    label, leak = table[demo_table.LABEL], table[demo_table.LEAK]
    assert all(leak[label == grade].max() < leak[label == grade + 1].min() for grade in range(4))


def test_files_divide_searches_and_hide_what_nobody_knows_beforehand(tmp_path):
    judged, new = demo_table.write_tables(tmp_path / "shop", 20, 5, 8, 0)
    known, unknown = rw.io.read_columns(judged), rw.io.read_columns(new)
    searches = [set(one.column(demo_table.QUERY).values.tolist()) for one in (known, unknown)]
    assert [len(one) for one in searches] == [20, 5]
    assert not searches[0] & searches[1]
    assert set(known.names) - set(unknown.names) == {demo_table.LABEL, demo_table.LEAK}
