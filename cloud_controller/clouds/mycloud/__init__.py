"""mycloud, the private cloud: importing this registers it."""

from cloud_controller.clouds.mycloud.cloud import MyCloud

__all__ = ["MyCloud"]
