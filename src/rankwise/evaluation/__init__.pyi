from rankwise.evaluation.comparison.comparison import Comparison as Comparison
from rankwise.evaluation.comparison.selection import Selection as Selection
from rankwise.evaluation.comparison.selection import select as select
from rankwise.evaluation.evaluation import Evaluation as Evaluation
from rankwise.evaluation.statistics.multiple_testing import correct as correct
from rankwise.evaluation.statistics.paired import paired_test as paired_test
from rankwise.report.page import write_report as write_report
