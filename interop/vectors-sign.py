# Signs the requests on standard input with botocore and prints its Authorization headers: a second opinion about SigV4.
# Input: JSON list of {method, url, headers: [[name, value], ...], body (base64), date, accessKeyId, secretAccessKey,
# sessionToken, region, service}. Output: JSON {"version": ..., "authorizations": [...]}.
import base64
import datetime
import hashlib
import json
import sys

import botocore
import botocore.auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials


def freeze(date):
    now = datetime.datetime.strptime(date, "%Y%m%dT%H%M%SZ").replace(tzinfo=datetime.timezone.utc)
    if hasattr(botocore.auth, "get_current_datetime"):
        botocore.auth.get_current_datetime = lambda *args, **kwargs: now
        return

    class Frozen(datetime.datetime):
        @classmethod
        def utcnow(cls):
            return now

    class Module:
        datetime = Frozen

    botocore.auth.datetime = Module


def sign(case):
    freeze(case["date"])
    body = base64.b64decode(case["body"])
    request = AWSRequest(method=case["method"], url=case["url"], data=body)
    for name, value in case["headers"]:
        request.headers[name] = value
    # Signed like every other x-amz header; AWS's clients add it where the service wants it.
    request.headers["X-Amz-Content-SHA256"] = hashlib.sha256(body).hexdigest()
    credentials = Credentials(case["accessKeyId"], case["secretAccessKey"], case["sessionToken"])
    signer = botocore.auth.S3SigV4Auth if case["service"].startswith("s3") else botocore.auth.SigV4Auth
    signer(credentials, case["service"], case["region"]).add_auth(request)
    return request.headers["Authorization"]


json.dump({"version": botocore.__version__, "authorizations": [sign(case) for case in json.load(sys.stdin)]}, sys.stdout)
