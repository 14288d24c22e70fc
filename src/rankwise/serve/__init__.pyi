from rankwise.serve.app import make_app as make_app
from rankwise.serve.client import AsyncClient as AsyncClient
from rankwise.serve.client import Client as Client
from rankwise.serve.client import ServiceError as ServiceError
from rankwise.serve.service import Service as Service
