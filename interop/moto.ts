import { spawn } from 'node:child_process'
import { request } from 'node:http'
import path from 'node:path'
import { freePort } from '../lab/free-port.ts'
import { applyAws } from '../src/apply/aws.ts'
import type { Draft } from '../src/apply/applier.ts'
import { Secret, type AwsCredential } from '../src/core/index.ts'
import { createOutbound } from '../src/net/index.ts'
import { createAssumeRole } from '../src/obtain/cloud-sts/assume-role.ts'
import { seconds } from '../src/fields/index.ts'
import type { Python } from './python.ts'

const ROLE = 'arn:aws:iam::123456789012:role/reader'
const REGION = 'us-east-1'
const clock = { now: () => Date.now() }

/** The calls that moto lets pass unsigned: they make the role and its policy, and assume it. All others are verified. */
const UNSIGNED_CALLS = 3

/**
 * AssumeRoleWithWebIdentity as moto's STS understands it, and requests that are signed with what it gives, as moto's S3
 * verifies them. Gives what was not as it should be.
 */
export async function askMoto(python: Python): Promise<readonly string[]> {
  const port = await freePort()
  const server = spawn(path.join(python.scripts, 'moto_server'), ['-H', '127.0.0.1', '-p', String(port)], {
    stdio: 'ignore',
    env: { ...process.env, INITIAL_NO_AUTH_ACTION_COUNT: String(UNSIGNED_CALLS) },
  })
  const outbound = createOutbound({ name: 'moto', clock, breaker: false })
  const wrong: string[] = []
  const expect = (holds: boolean, what: string) => void (holds || wrong.push(what))
  try {
    await untilListening(port)
    const endpoint = `http://127.0.0.1:${port}`
    await makeRole(endpoint)
    const spec = { region: REGION, service: 's3', sessionDuration: seconds(900) }
    const { credential, expiresAtMs } = await createAssumeRole(spec, { clock, outbound, endpoint, writesArns: true })({
      roleArn: ROLE,
      sessionName: 'alice',
      token: new Secret('eyJhbGciOiJub25lIn0.eyJzdWIiOiJhbGljZSJ9.c2ln'),
    })
    const aws = credential as AwsCredential
    const lifetimeS = (expiresAtMs - clock.now()) / 1_000
    expect(aws.accessKeyId.startsWith('ASIA') && lifetimeS > 800 && lifetimeS <= 901, 'credentials for 900 s')
    for (const [method, target, body, status] of CALLS) {
      const answer = await send(port, signed(port, method, target, body, aws), body)
      expect(answer.status === status, `${method} ${target}: ${answer.status}`)
    }
    expect((await send(port, signed(port, 'GET', OBJECT, '', aws), '')).body === TEXT, 'the object')
    const forged = signed(port, 'GET', OBJECT, '', aws)
    const signature = forged.headers.pop() ?? ''
    forged.headers.push(signature.slice(0, -1) + (signature.endsWith('0') ? '1' : '0'))
    const refused = await send(port, forged, '')
    expect(refused.status === 403 && refused.body.includes('SignatureDoesNotMatch'), 'a forged signature is refused')
    return wrong
  } finally {
    server.kill()
    await outbound.close()
  }
}

const OBJECT = '/bucket/a%20b%2Bc/%C3%A4//x'
const TEXT = 'grüße'
const CALLS: readonly (readonly [method: string, target: string, body: string, status: number])[] = [
  ['PUT', '/bucket', '', 200],
  ['PUT', OBJECT, TEXT, 200],
  ['GET', OBJECT, '', 200],
  ['GET', '/bucket?list-type=2&prefix=a%20b', '', 200],
  ['GET', '/bucket?list-type=2&prefix=a+b', '', 200],
  ['DELETE', OBJECT, '', 204],
  ['PUT', OBJECT, TEXT, 200],
]

/** A role that may do everything. */
async function makeRole(endpoint: string): Promise<void> {
  const policy = (statement: object) => JSON.stringify({ Version: '2012-10-17', Statement: [statement] })
  const trust = { Effect: 'Allow', Principal: { Federated: '*' }, Action: 'sts:AssumeRoleWithWebIdentity' }
  const calls = [
    { Action: 'CreateRole', RoleName: 'reader', AssumeRolePolicyDocument: policy(trust) },
    {
      Action: 'PutRolePolicy',
      RoleName: 'reader',
      PolicyName: 'all',
      PolicyDocument: policy({ Effect: 'Allow', Action: '*', Resource: '*' }),
    },
  ]
  // moto selects services by the scope of the signature, which it does not verify yet.
  const scope = `AKIANOBODY/20260101/${REGION}/iam/aws4_request`
  const authorization = `AWS4-HMAC-SHA256 Credential=${scope}, SignedHeaders=host, Signature=0`
  for (const call of calls) {
    const body = new URLSearchParams({ ...call, Version: '2010-05-08' })
    const { status } = await fetch(endpoint, { method: 'POST', headers: { authorization }, body })
    if (status !== 200) throw new Error(`moto answers ${call.Action} with ${status}`)
  }
}

/** A request to a server on loopback, signed as ours are; a body is that of a form where `form` says so. */
export function signed(
  port: number,
  method: string,
  target: string,
  body: string,
  credential: AwsCredential,
  form = false,
): Draft {
  const host = `127.0.0.1:${port}`
  const bytes = Buffer.from(body)
  const draft: Draft = {
    method,
    path: target,
    host,
    headers: form ? ['host', host, 'content-type', 'application/x-www-form-urlencoded'] : ['host', host],
    body: body === '' ? { kind: 'none' } : { kind: 'kept', bytes },
    nowMs: clock.now(),
  }
  applyAws(draft, credential)
  return draft
}

/** Sends the signed request unchanged. */
export function send(
  port: number,
  draft: Draft,
  body: string,
): Promise<{ readonly status: number; readonly body: string }> {
  return new Promise((resolve, reject) => {
    const headers = [...draft.headers, 'content-length', String(Buffer.byteLength(body))]
    const sent = request({ host: '127.0.0.1', port, method: draft.method, path: draft.path, headers }, (response) => {
      const chunks: Buffer[] = []
      response.on('data', (chunk: Buffer) => chunks.push(chunk))
      response.on('end', () =>
        resolve({ status: response.statusCode ?? 0, body: Buffer.concat(chunks).toString('utf8') }),
      )
    })
    sent.on('error', reject)
    sent.end(body)
  })
}

/** Waits for a server on loopback that answers at `path`. */
export async function untilListening(port: number, path = '/moto-api/'): Promise<void> {
  for (let attempt = 0; attempt < 150; attempt++) {
    try {
      await fetch(`http://127.0.0.1:${port}${path}`)
      return
    } catch {
      await new Promise((resolve) => setTimeout(resolve, 200))
    }
  }
  throw new Error('the server does not start')
}
