import ciir.umass.edu.learning.DataPoint;
import ciir.umass.edu.learning.Ranker;
import ciir.umass.edu.learning.RankerFactory;
import java.io.PrintWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;

/** Scores of model files of RankLib: every three arguments are a model, rows of features, and the file of their scores. */
public class RankLibScores {

    /** A document as the plugins make one: features by place, 0 for those without a value. */
    static class Row extends DataPoint {
        Row(String line) {
            String[] cells = line.split("\t", -1);
            fVals = new float[cells.length];
            for (int i = 0; i < cells.length; i++) {
                float value = (float) Double.parseDouble(cells[i]);
                fVals[i] = Float.isNaN(value) ? 0.0f : value;
            }
        }

        @Override
        public float getFeatureValue(int number) {
            return fVals[number - 1];
        }

        @Override
        public void setFeatureValue(int number, float value) {
            fVals[number - 1] = value;
        }

        @Override
        public void setFeatureVector(float[] values) {
            fVals = values;
        }

        @Override
        public float[] getFeatureVector() {
            return fVals;
        }
    }

    public static void main(String[] arguments) throws Exception {
        List<String> tasks = Files.readAllLines(Path.of(arguments[0]));
        for (int i = 0; i < tasks.size(); i += 3) {
            Ranker ranker = new RankerFactory().loadRankerFromString(Files.readString(Path.of(tasks.get(i))));
            try (PrintWriter out = new PrintWriter(tasks.get(i + 2))) {
                for (String line : Files.readAllLines(Path.of(tasks.get(i + 1)))) {
                    out.println(ranker.eval(new Row(line)));
                }
            }
        }
    }
}
