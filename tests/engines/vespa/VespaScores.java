import com.yahoo.searchlib.rankingexpression.RankingExpression;
import com.yahoo.searchlib.rankingexpression.evaluation.DoubleValue;
import com.yahoo.searchlib.rankingexpression.evaluation.MapContext;
import java.io.PrintWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;

/**
 * Values of rank expressions: every three arguments are expressions, rows of features, and the file of their scores.
 *
 * The first line of rows has the names of the features. A line of expressions is a name, a tab and an expression that may
 * use the names before it; the last one is the score.
 */
public class VespaScores {
    public static void main(String[] arguments) throws Exception {
        List<String> tasks = Files.readAllLines(Path.of(arguments[0]));
        for (int i = 0; i < tasks.size(); i += 3) {
            List<String> lines = Files.readAllLines(Path.of(tasks.get(i)));
            RankingExpression[] expressions = new RankingExpression[lines.size()];
            String[] names = new String[lines.size()];
            for (int j = 0; j < names.length; j++) {
                int tab = lines.get(j).indexOf('\t');
                names[j] = lines.get(j).substring(0, tab);
                expressions[j] = new RankingExpression(lines.get(j).substring(tab + 1));
            }
            List<String> rows = Files.readAllLines(Path.of(tasks.get(i + 1)));
            String[] features = rows.get(0).split("\t", -1);
            try (PrintWriter out = new PrintWriter(tasks.get(i + 2))) {
                for (String line : rows.subList(1, rows.size())) {
                    String[] cells = line.split("\t", -1);
                    MapContext context = new MapContext();
                    for (int j = 0; j < cells.length; j++) {
                        context.put(features[j], new DoubleValue(Double.parseDouble(cells[j])));
                    }
                    double score = 0.0;
                    for (int j = 0; j < names.length; j++) {
                        score = expressions[j].evaluate(context).asDouble();
                        context.put(names[j], new DoubleValue(score));
                    }
                    out.println(score);
                }
            }
        }
    }
}
