import { generateKeyPairSync, randomBytes } from 'node:crypto'
import { mkdir, readdir, readFile, rename, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { parseAllDocuments } from 'yaml'
import { configFor } from '../../lab/cli/lab-folder.ts'
import { LAB_PORTS } from '../../lab/cli/lab-ports.ts'
import type { Marks } from '../oracle/marks.ts'
import type { Services } from './services.ts'
import type { Store } from './store.ts'

/** The folder that all replicas read, and what is changed in it while they run. */
export interface Configuration {
  readonly directory: string
  /** Whether a fixed secret is good now: the present one, and the one before for a while. */
  isCurrent(which: StaticSecret, value: string): boolean
  /** A new value for both fixed secrets; the previous ones stay valid for `graceMs`. */
  rotateStatic(graceMs: number): Promise<void>
  /** The keys that were added last sign from now on; the next are added, so that all replicas know them by then; the oldest go. */
  rotateKeys(): Promise<void>
  /** Another set of routes: `/generation-N` comes, the one before goes. Gives N. */
  reload(): Promise<number>
  close(): Promise<void>
}

export type StaticSecret = 'bearer' | 'apiKey'

const FILES: Readonly<Record<StaticSecret, readonly [name: string, key: string]>> = {
  bearer: ['lab-bearer', 'token'],
  apiKey: ['lab-api-key', 'value'],
}
const PLENTY = { perSecond: 10_000, burst: 10_000 }
/** The one that signs, the next, and those before it whose tokens may be good; the product takes 16. */
const MOST_KEYS = 8
const SEALING = 'endure-sealing'
/** The longest life of a connected account. */
export const MOST_CONNECTED_SECONDS = 150
const SIGNING = 'endure-signing'

interface KeyRef {
  readonly name: string
  readonly key: string
}

/** The last one signs from now on, and this one is the last; the oldest go. */
export function turned<T>(keys: readonly T[], next: T): readonly T[] {
  const inOrder = keys.length > 1 ? [...keys.slice(-1), ...keys.slice(0, -1)] : keys
  return [...inOrder.slice(0, MOST_KEYS - 1), next]
}

/** A copy of config/lab with these addresses, with what replicas need in common. */
export async function openConfiguration(
  proxyPort: number,
  services: Pick<Services, 'gates'>,
  store: Pick<Store, 'sentinelAddresses' | 'masterName' | 'user'>,
  marks: Pick<Marks, 'add'>,
): Promise<Configuration> {
  const { gates } = services
  const at = (port: number): string => `127.0.0.1:${port}`
  const folder = await configFor(
    {
      [at(LAB_PORTS.proxy)]: at(proxyPort),
      [at(LAB_PORTS.identity)]: at(gates.identity.port),
      [at(LAB_PORTS.identityTls)]: at(gates.identityTls.port),
      [at(LAB_PORTS.backend)]: at(gates.backend.port),
      [at(LAB_PORTS.sts)]: at(gates.sts.port),
      [at(LAB_PORTS.workspace)]: at(gates.workspace.port),
    },
    true,
  )
  const { directory } = folder
  const secret = async (name: string, key: string, value: string): Promise<KeyRef> => {
    marks.add(value, `secret ${name}/${key}`)
    await put(path.join(directory, 'secrets', name), key, value)
    return { name, key }
  }
  const kvstore = {
    aclUserConfig: {
      usernameSecretRef: await secret('endure-redis', 'username', store.user.username),
      passwordSecretRef: await secret('endure-redis', 'password', store.user.password),
    },
    // Acknowledged writes survive the loss of a master: no user has to log in again.
    waitReplicas: 1,
    sentinelConfig: { masterName: store.masterName, sentinelAddrs: store.sentinelAddresses },
  }
  const storage = { type: 'kvstore', kvstore }
  const sealing = await secret(SEALING, 'first', randomBytes(32).toString('base64url'))
  const session = await secret('endure-session', 'key', randomBytes(32).toString('base64url'))
  const proxyFile = path.join(directory, 'proxy.yaml')
  const serverFile = path.join(directory, 'upstream.yaml')
  await edit(proxyFile, [
    [['spec', 'cache'], { storage, keySecretRefs: [sealing] }],
    [['spec', 'sessionKeySecretRef'], session],
    [['spec', 'connections', 'storage'], storage],
    [['spec', 'connections', 'keySecretRefs'], [sealing]],
    [['spec', 'connections', 'providers', '0', 'maxAge'], `${MOST_CONNECTED_SECONDS}s`],
  ])
  const server = ['spec', 'embeddedAuthServer']
  const limits = { registration: PLENTY, authorize: PLENTY, token: PLENTY, registeredClients: 1_000_000 }
  await edit(serverFile, [
    [[...server, 'storage'], storage],
    [[...server, 'limits'], limits],
  ])
  await markSecrets(path.join(directory, 'secrets'), marks)

  const good: Record<StaticSecret, Map<string, number>> = { bearer: new Map(), apiKey: new Map() }
  for (const which of Object.keys(FILES) as StaticSecret[]) {
    const value = (await readFile(path.join(directory, 'secrets', ...FILES[which]), 'utf8')).trimEnd()
    good[which].set(value, Number.POSITIVE_INFINITY)
  }
  let signing: readonly KeyRef[] = [{ name: 'lab-login', key: 'signing-key' }]
  let hmac: readonly KeyRef[] = [{ name: 'lab-login', key: 'hmac' }]
  let generation = 0
  let made = 0

  return {
    directory,
    isCurrent: (which, value) => (good[which].get(value) ?? 0) > Date.now(),
    async rotateStatic(graceMs) {
      for (const which of Object.keys(FILES) as StaticSecret[]) {
        const value = `${which}-${randomBytes(18).toString('base64url')}`
        for (const [before, until] of good[which]) good[which].set(before, Math.min(until, Date.now() + graceMs))
        good[which].set(value, Number.POSITIVE_INFINITY)
        await secret(...FILES[which], value)
      }
    },
    async rotateKeys() {
      made += 1
      const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
      const pem = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
      signing = turned(signing, await secret(SIGNING, `key-${made}`, pem))
      hmac = turned(hmac, await secret(SIGNING, `hmac-${made}`, randomBytes(32).toString('base64url')))
      await edit(serverFile, [
        [[...server, 'signingKeySecretRefs'], signing],
        [[...server, 'hmacSecretRefs'], hmac],
      ])
    },
    async reload() {
      generation += 1
      const routes = parseAllDocuments(await readFile(proxyFile, 'utf8'))[0]?.toJS() as {
        spec: { routes: { name: string }[] }
      }
      const path = `/generation-${generation}`
      const own = {
        name: path.slice(1),
        path,
        target: `http://${at(gates.backend.port)}/unauthenticated/mcp`,
        externalAuthConfigRef: { name: 'lab-unauthenticated' },
        auth: { mode: 'anonymous' },
      }
      const others = routes.spec.routes.filter(({ name }) => !name.startsWith('generation-'))
      await edit(proxyFile, [
        [
          ['spec', 'routes'],
          [...others, own],
        ],
      ])
      return generation
    },
    close: () => folder.close(),
  }
}

/** Written beside and moved into place, so that no reader sees half of it. */
async function put(directory: string, name: string, text: string): Promise<void> {
  await mkdir(directory, { recursive: true })
  const beside = path.join(directory, `.${name}.new`)
  await writeFile(beside, text, { mode: 0o600 })
  await rename(beside, path.join(directory, name))
}

type Values = readonly (readonly [place: readonly string[], value: unknown])[]

/** Sets values in the first document of a file. */
async function edit(file: string, values: Values): Promise<void> {
  await put(path.dirname(file), path.basename(file), edited(await readFile(file, 'utf8'), values))
}

/** The same documents with values set in the first of them, however often that was done before. */
export function edited(text: string, values: Values): string {
  const documents = parseAllDocuments(text)
  for (const [place, value] of values) documents[0]?.setIn(place, value)
  // Those that began with a line of their own write it as well.
  return documents
    .map((document) => document.toString())
    .map((one, index) => (index === 0 || one.startsWith('---\n') ? one : `---\n${one}`))
    .join('')
}

/** Secrets shared by the identity provider and the proxies must appear nowhere else. */
async function markSecrets(directory: string, marks: Pick<Marks, 'add'>): Promise<void> {
  for (const name of await readdir(directory))
    for (const key of await readdir(path.join(directory, name)))
      if (!/\.crt$|^username$/.test(key))
        marks.add((await readFile(path.join(directory, name, key), 'utf8')).trimEnd(), `secret ${name}/${key}`)
}
