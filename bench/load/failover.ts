/**
 * Effect on users when a Redis master is killed (kill -9) during logins and requests:
 *
 *   node bench/load/failover.ts [--seconds 30] [--logins 20] [--requests 500]
 *
 * Two replicas of the proxy, three sentinels, a master and two replicas of Redis on TLS, `waitReplicas: 1`, the default rates of
 * the authorization server; each login comes from an address of its own by way of `listen.trustedProxies`. Budgets: no login
 * whose tokens were given out is lost at either replica; no request with a live token fails. Exit code 1 when exceeded. The time
 * to recover is stated.
 */
import { parseArgs } from 'node:util'
import { Agent, Pool } from 'undici'
import { Browser } from '../../test/support/authserver/browser.ts'
import { logIn, postForm, postJson, REDIRECT, type TestClient, type Tokens } from '../../test/support/authserver/rig.ts'
import { CALL, MCP } from '../../test/support/e2e/credentials.ts'
import { openLoginFleet, type Replica } from '../../test/support/e2e/authserver/fleet.ts'
import { startDeployment } from '../../test/support/redis/deployment.ts'
import { createSockets } from '../../test/support/sockets.ts'
import { TLS } from '../../test/support/tls.ts'
import { budget, keepPace, pause, problemsOf, quantile, say, tookMs } from './pace.ts'

const { values } = parseArgs({
  options: { seconds: { type: 'string' }, logins: { type: 'string' }, requests: { type: 'string' } },
})
const seconds = Number(values.seconds ?? 30)
const loginsPerSecond = Number(values.logins ?? 20)
const requestsPerSecond = Number(values.requests ?? 500)
const CALLERS = 20
const BEFORE_MS = 5_000

const sockets = createSockets()
const deployment = await startDeployment({ replicas: 2, sentinels: 3, tls: true })
try {
  const fleet = await openLoginFleet(sockets, deployment, {
    size: 2,
    spec: { limits: undefined },
    kvstore: {
      waitReplicas: 1,
      tls: { caCertSecretRef: { name: 'idp', key: 'ca' } },
      sentinelTls: { caCertSecretRef: { name: 'redis', key: 'sentinel-ca' } },
    },
    files: { 'secrets/redis/sentinel-ca': TLS.otherCa.toString() },
    listen: { address: '127.0.0.1:0', trustedProxies: ['127.0.0.1/32'] },
  })
  const addressOf = (index: number) => `10.${(index >> 16) & 255}.${(index >> 8) & 255}.${index & 255}`
  const from = (index: number) => ({ 'x-forwarded-for': addressOf(index) })
  const client = await registered(fleet.issuer)

  const login = async (index: number): Promise<Tokens> => {
    const { answer, pkce } = await logIn(fleet, client, { browser: new Browser(from(index)) })
    const code = answer.get('code')
    if (code === null) throw new Error(`no code: ${answer.get('error')}`)
    const form = {
      grant_type: 'authorization_code',
      client_id: client.id,
      code,
      code_verifier: pkce.verifier,
      redirect_uri: REDIRECT,
    }
    const response = await postForm(`${fleet.replicas[index % 2]?.url}/oauth/token`, form, from(index))
    const body = (await response.json()) as Tokens & { error?: string }
    if (response.status !== 200) throw new Error(`token endpoint: ${response.status} ${body.error}`)
    return body
  }

  const pools = fleet.replicas.map(({ url }) => new Pool(url, { connections: 32 }))
  const call = async (replica: number, token: string): Promise<void> => {
    const { statusCode, body } = await (pools[replica] ?? new Agent()).request({
      origin: fleet.replicas[replica]?.url ?? '',
      path: '/mcp',
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        authorization: `Bearer ${token}`,
        ...MCP,
      },
      body: JSON.stringify(CALL),
    })
    const text = await body.text()
    if (statusCode !== 200) throw new Error(`${statusCode} ${/"reason":"(\w+)"/.exec(text)?.[1] ?? ''}`)
  }

  const callers: Tokens[] = []
  for (let index = 0; index < CALLERS; index++) callers.push(await login(1_000_000 + index))
  for (const { access_token: token } of callers) for (const replica of [0, 1]) await call(replica, token)

  const acknowledged: Tokens[] = []
  const requests = keepPace(requestsPerSecond, (index) => call(index % 2, callers[index % CALLERS]?.access_token ?? ''))
  const logins = keepPace(loginsPerSecond, async (index) => void acknowledged.push(await login(index)))
  await pause(BEFORE_MS)
  const killedAt = performance.now()
  await deployment.nodes[0]?.kill()
  await pause(seconds * 1000 - BEFORE_MS)
  await Promise.all([requests.stop(), logins.stop()])

  const failed = logins.outcomes.filter(({ problem }) => problem !== undefined)
  const lastFailure = Math.max(killedAt, ...failed.map(({ startedAt }) => startedAt))
  const succeeded = logins.outcomes.filter(({ problem, startedAt }) => problem === undefined && startedAt > killedAt)
  const firstSuccess = Math.min(...succeeded.map(({ endedAt }) => endedAt))
  const lost: string[] = []
  for (const [index, tokens] of acknowledged.entries()) {
    for (const replica of [0, 1]) {
      await call(replica, tokens.access_token).catch((error: unknown) => lost.push(String(error)))
    }
    if (index % 10 === 0 && !(await renews(fleet.replicas[1], client, tokens, from(index)))) lost.push('refresh')
  }
  const before = tookMs(requests.outcomes, killedAt - BEFORE_MS, killedAt)
  const during = tookMs(requests.outcomes, killedAt, killedAt + 10_000)
  const broken = requests.outcomes.filter(({ problem }) => problem !== undefined)
  const ms = (value: number) => `${value.toFixed(0)} ms`
  say(
    `${acknowledged.length} logins, ${failed.length} of them tried during the failover in vain: ${JSON.stringify(problemsOf(logins.outcomes))}`,
  )
  say(
    `logins work again ${ms(firstSuccess - killedAt)} after the kill; the last that failed was begun ${ms(lastFailure - killedAt)} after it`,
  )
  say(
    `${requests.outcomes.length} requests with live tokens; p99 ${ms(quantile(before, 0.99))} before, ${ms(quantile(during, 0.99))} in the 10 s after`,
  )
  budget('acknowledged logins that are lost', lost.length)
  budget(`requests with live tokens that failed ${JSON.stringify(problemsOf(broken))}`, broken.length)
  for (const pool of pools) await pool.close()
} finally {
  await sockets.closeAll()
  await deployment.close()
}

async function registered(issuer: string): Promise<TestClient> {
  const metadata = {
    client_name: 'Load',
    redirect_uris: [REDIRECT],
    grant_types: ['authorization_code', 'refresh_token'],
    token_endpoint_auth_method: 'none',
  }
  const { client_id: id } = (await (await postJson(`${issuer}/oauth/register`, metadata)).json()) as {
    client_id: string
  }
  return { id, secret: undefined }
}

async function renews(
  replica: Replica | undefined,
  { id }: TestClient,
  tokens: Tokens,
  headers: Readonly<Record<string, string>>,
): Promise<boolean> {
  const form = { grant_type: 'refresh_token', client_id: id, refresh_token: tokens.refresh_token ?? '' }
  return (await postForm(`${replica?.url}/oauth/token`, form, headers)).status === 200
}
