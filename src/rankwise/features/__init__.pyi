from rankwise.features.kernel_maps import FourierFeatures as FourierFeatures
from rankwise.features.kernel_maps import KernelPCAMap as KernelPCAMap
