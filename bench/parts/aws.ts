import { credentialsXml, startStsDouble } from '../../test/support/obtain/cloud-sts/support/sts-double.ts'
import { extauth } from '../../test/support/e2e/process.ts'
import { authConfig, configFolder, freePort, proxyConfig } from '../../test/support/e2e/run.ts'
import { createSockets } from '../../test/support/sockets.ts'
import { startIssuer } from '../callers.ts'
import { measureLoad, type Subject } from '../measure.ts'
import type { Generator } from '../processes.ts'
import { awsTable } from '../report.ts'

const CALLERS = 100
const SHAPE = { size: 1024, connections: 16 }
const TOKEN = 'cloudSts, the token of the caller'
const WAYS = { token: TOKEN, process: 'a role from the identity of the process', hub: 'a role behind a hub' } as const
type Way = keyof typeof WAYS
const ROLE = (name: Way) => `arn:aws:iam::222222222222:role/mcp-${name}`
const HUB = 'arn:aws:iam::111111111111:role/hub'
const KEYS = { AWS_ACCESS_KEY_ID: 'AKIABENCHBENCHBENCH1', AWS_SECRET_ACCESS_KEY: 'secret' }

/** What goes to STS of each way: whose identity, through which hop. */
const SPECS: Readonly<Record<Way, object>> = {
  token: {},
  process: { source: { type: 'ambient', chain: ['environment'] } },
  hub: { source: { type: 'role', through: { roleArn: HUB, source: { type: 'ambient', chain: ['environment'] } } } },
}

/**
 * Cost of requests signed with roles, by the identity sent to STS, with cached credentials; and how
 * often STS is asked: once for each caller, and once more for the hub. Gives a table. Throws where STS was asked for the same again.
 */
export async function runAws(
  generator: Generator,
  backend: string,
  options: { readonly rounds: number; readonly roundMs: number },
): Promise<string> {
  const sockets = createSockets()
  const issuer = await startIssuer()
  const sts = await startStsDouble()
  sockets.closing(sts)
  sts.answer = (form) => ({
    body: credentialsXml({
      action: form.get('Action') ?? '',
      sessionToken: 't'.repeat(900),
      expiration: new Date(Date.now() + 3_600_000).toISOString(),
    }),
  })
  try {
    const names = Object.keys(WAYS) as Way[]
    const route = (name: string) => ({
      name,
      path: `/${name}`,
      target: `${backend}/mcp`,
      externalAuthConfigRef: { name },
    })
    const { url: issuerUrl, audience } = issuer
    const provider = { name: 'bench', issuerUrl, audience, jwksUrl: `${issuerUrl}/jwks`, allowPrivateIP: true }
    const auth = { mode: 'oauth', oauth: { resourceUrl: audience, providers: [provider] } }
    const configs = names.map((name) => {
      const cloudSts = { region: 'eu-central-1', fallbackRoleArn: ROLE(name), ...SPECS[name] }
      return [`${name}.json`, authConfig(name, { type: 'cloudSts', cloudSts })] as const
    })
    const folder = await configFolder({
      ...Object.fromEntries(configs),
      'proxy.json': proxyConfig({ auth, routes: names.map(route) }),
    })
    sockets.closing({ close: folder.remove })
    const url = `http://127.0.0.1:${await freePort()}`
    const places = ['--config', folder.directory, '--listen', url.replace('http://', ''), '--admin', '127.0.0.1:0']
    const proxy = extauth(['proxy', ...places, '--sts-endpoint', sts.url], { env: { ...process.env, ...KEYS } })
    sockets.closing({ close: () => (proxy.process.kill('SIGKILL'), proxy.ended) })
    await proxy.line('listening')

    const authorizations = issuer.tokens(CALLERS).map((token) => `Bearer ${token}`)
    const pid = proxy.process.pid ?? 0
    const subjects: Subject[] = names.map((name) => ({ name: WAYS[name], url: `${url}/${name}`, pid, authorizations }))
    for (const subject of subjects) await generator.ask({ kind: 'load', ...SHAPE, ms: 1500, ...subject })
    const shape = { ...SHAPE, ms: options.roundMs }
    const figures = await measureLoad(generator, subjects, TOKEN, shape, options.rounds)
    const asked = sts.calls.map((form) => `${form.get('RoleArn')} ${form.get('RoleSessionName')}`)
    const repeated = asked.filter((each, index) => asked.indexOf(each) !== index)
    if (repeated.length > 0) throw new Error(`STS was asked again, first for ${repeated[0]}`)
    const hubs = asked.filter((each) => each.startsWith(HUB)).length
    return awsTable(options.rounds, figures, { callers: CALLERS, roles: asked.length - hubs, hubs }, 1.1)
  } finally {
    await sockets.closeAll()
    issuer.close()
  }
}
