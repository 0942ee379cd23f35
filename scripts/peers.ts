import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer, type AddressInfo } from 'node:net'
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { Secret, type AwsCredential } from '../src/core/index.ts'
import { createOutbound } from '../src/net/index.ts'
import { createAssumeRole } from '../src/obtain/cloud-sts/assume-role.ts'
import { seconds } from '../src/resources/index.ts'
import { askKeycloak, startKeycloak } from './peers-keycloak.ts'
import { botocoreAuthorizations, installPython, systemPython, type Python } from './peers-python.ts'
import { ourAuthorization, signingCases } from './vectors-cases.ts'

// Runs what others wrote against this repository, as far as it can be had here, and says which of it ran. Fails only when
// one of them disagrees.
const say = (line: string) => process.stdout.write(`peers: ${line}\n`)

/** Signatures of requests that are in no recorded vector. */
function compareSignatures(python: Python): boolean {
  const cases = signingCases(500, 1_000)
  const { version, authorizations } = botocoreAuthorizations(python, cases)
  const different = cases.filter((one, index) => ourAuthorization(one) !== authorizations[index])
  for (const { method, url } of different.slice(0, 5)) say(`botocore signs ${method} ${url} differently`)
  say(`botocore ${version} ran: ${cases.length - different.length} of ${cases.length} signatures agree`)
  return different.length === 0
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  return port
}

/** AssumeRoleWithWebIdentity as moto's STS understands it. */
async function askMoto(python: Python): Promise<boolean> {
  const port = await freePort()
  const server = spawn(path.join(python.scripts, 'moto_server'), ['-H', '127.0.0.1', '-p', String(port)], {
    stdio: 'ignore',
  })
  const clock = { now: () => Date.now() }
  const outbound = createOutbound({ name: 'moto', clock, breaker: false })
  try {
    await untilListening(port)
    const endpoint = `http://127.0.0.1:${port}`
    const spec = { region: 'eu-central-1', service: 'aws-mcp', sessionDuration: seconds(900) }
    const assumeRole = createAssumeRole(spec, { clock, outbound, endpoint })
    const { credential, expiresAtMs } = await assumeRole({
      roleArn: 'arn:aws:iam::123456789012:role/reader',
      sessionName: 'alice',
      token: new Secret('eyJhbGciOiJub25lIn0.eyJzdWIiOiJhbGljZSJ9.c2ln'),
    })
    const { accessKeyId } = credential as AwsCredential
    const lifetimeS = (expiresAtMs - clock.now()) / 1_000
    const isRight = accessKeyId.startsWith('ASIA') && lifetimeS > 800 && lifetimeS <= 901
    say(`moto ran: AssumeRoleWithWebIdentity gave ${isRight ? 'credentials for 900 s' : 'something else'}`)
    return isRight
  } finally {
    server.kill()
    await outbound.close()
  }
}

async function untilListening(port: number): Promise<void> {
  for (let attempt = 0; attempt < 150; attempt++) {
    try {
      await fetch(`http://127.0.0.1:${port}/moto-api/`)
      return
    } catch {
      await new Promise((resolve) => setTimeout(resolve, 200))
    }
  }
  throw new Error('moto does not start')
}

/** Keycloak as an upstream of the embedded authorization server. */
async function useKeycloak(): Promise<boolean> {
  const file = (name: string) => path.join(import.meta.dirname, '..', 'test', 'fixtures', 'tls', name)
  const tls = { ca: readFileSync(file('ca.pem')), certFile: file('server.pem'), keyFile: file('server.key') }
  const keycloak = await startKeycloak(await freePort(), tls, (why) => say(`not from Maven: ${why}`))
  if (keycloak === undefined) {
    say('Keycloak did not run')
    return true
  }
  try {
    let isRight = true
    for (const clientId of ['us', 'public']) {
      const wrong = await askKeycloak(keycloak, clientId)
      say(
        `Keycloak ran: login and refresh through client "${clientId}": ${wrong.length === 0 ? 'right' : wrong.join(', ')}`,
      )
      isRight &&= wrong.length === 0
    }
    return isRight
  } finally {
    keycloak.close()
  }
}

const tell = (why: string) => say(`not from PyPI: ${why}`)
const installed = installPython(['botocore==1.44.5', 'moto[sts,server]==5.2.5'], tell)
const python = installed ?? systemPython()
try {
  if (python === undefined) say('botocore did not run: it can be had neither from PyPI nor from this system')
  else if (!compareSignatures(python)) process.exitCode = 1
  if (installed === undefined) say('moto did not run')
  else if (!(await askMoto(installed))) process.exitCode = 1
} finally {
  python?.close()
}
if (!(await useKeycloak())) process.exitCode = 1
