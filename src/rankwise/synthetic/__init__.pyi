from rankwise.synthetic.hybrid import make_hybrid as make_hybrid
from rankwise.synthetic.kernel_streams import KernelStream as KernelStream
from rankwise.synthetic.kernel_streams import kernel_stream as kernel_stream
from rankwise.synthetic.streams import Stream as Stream
from rankwise.synthetic.streams import drifting_stream as drifting_stream
from rankwise.synthetic.streams import noisy_stream as noisy_stream
from rankwise.synthetic.streams import separable_stream as separable_stream
