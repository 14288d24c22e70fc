from rankwise.evaluation.compare.result import Comparison as Comparison
from rankwise.evaluation.compare.select import Selection as Selection
from rankwise.evaluation.compare.select import select as select
from rankwise.evaluation.evaluate import Evaluation as Evaluation
from rankwise.evaluation.statistics.paired import paired_test as paired_test
from rankwise.evaluation.statistics.significance import correct as correct
from rankwise.report.page import write_report as write_report
