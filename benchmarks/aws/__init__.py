"""The AWS benchmarks: this controller and the peer, Kubernetes' own AWS controller in Go, on one API server and moto.

`proxy.py` stands before moto for both and counts; `account.py` is what there is in the cloud; `cluster.py` the nodes
and Services; `daemons.py` how either controller is started and measured; the workloads are in `workloads.py`.
"""
