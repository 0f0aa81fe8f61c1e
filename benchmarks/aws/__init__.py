"""The AWS benchmarks: this controller and the peer, Kubernetes' own AWS controller in Go, on one API server and moto.

`proxy.py` is in front of moto for both and counts calls; `account.py` prepares the cloud; `cluster.py` the nodes and
Services; `daemons.py` starts and measures either controller; the workloads are in `workloads.py`.
"""
