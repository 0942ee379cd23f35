import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync, globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import type { Peer } from './peers.ts'

const BIN = path.join(import.meta.dirname, 'node_modules/yaml-language-server/bin/yaml-language-server')
const ANSWER_MS = 60_000
const ROOT = path.join(import.meta.dirname, '..')
const SCHEMA = path.join(ROOT, 'config/generated/extauth.schema.json')

/** Two documents, each with an unknown field; only its modeline covers the second. */
const BROKEN = [
  'kind: MCPExternalAuthConfig\nspec: { type: bearerToken, bearerTokn: {} }',
  'kind: ProxyConfig\nspec: { rutes: [] }',
]
  .map(
    (text) =>
      `# yaml-language-server: $schema=${SCHEMA}\napiVersion: extauth.dev/v1alpha1\nmetadata: { name: a }\n${text}\n`,
  )
  .join('---\n')

/** The language server behind most editors' YAML: our examples are right to it, and mistakes are seen. */
export function editorPeer(say: (line: string) => void): Peer {
  return {
    name: 'yaml-language-server',
    missing: () =>
      existsSync(BIN) ? undefined : 'it is not installed: npm ci --prefix interop --ignore-scripts installs it',
    async run() {
      const directory = mkdtempSync(path.join(tmpdir(), 'extauth-editor-'))
      let server: ChildProcess | undefined
      try {
        server = spawn(process.execPath, [BIN, '--stdio'], { stdio: ['pipe', 'pipe', 'ignore'] })
        const broken = path.join(directory, 'broken.yaml')
        writeFileSync(broken, BROKEN)
        const patterns = ['config/*.yaml', 'config/{examples,init,lab}/*.yaml']
        const examples = globSync(patterns, { cwd: ROOT }).map((file) => path.join(ROOT, file))
        const diagnostics = await ask(server, [...examples, broken])
        const wrong = examples.filter((file) => diagnostics.get(file)?.length !== 0)
        for (const file of wrong)
          say(`${path.relative(ROOT, file)}: ${diagnostics.get(file)?.join('; ') ?? 'no answer'}`)
        const found = diagnostics.get(broken)?.join('\n') ?? ''
        const isSeen = found.includes('bearerTokn') && found.includes('rutes')
        const seen = isSeen ? 'seen' : 'NOT seen'
        say(
          `yaml-language-server ran: ${examples.length - wrong.length} of ${examples.length} files right, mistakes ${seen}`,
        )
        return wrong.length === 0 && isSeen && examples.length > 20
      } finally {
        server?.kill()
        rmSync(directory, { recursive: true, force: true })
      }
    },
  }
}

interface Message {
  readonly id?: number
  readonly method?: string
  readonly params?: {
    readonly uri?: string
    readonly diagnostics?: readonly { readonly message: string }[]
    readonly items?: readonly unknown[]
  }
}

/** Diagnostics of each file (Language Server Protocol 3.17, publishDiagnostics). */
async function ask(server: ChildProcess, files: readonly string[]): Promise<ReadonlyMap<string, readonly string[]>> {
  const send = (message: object): void => {
    const body = Buffer.from(JSON.stringify({ jsonrpc: '2.0', ...message }))
    server.stdin?.write(Buffer.concat([Buffer.from(`Content-Length: ${body.length}\r\n\r\n`), body]))
  }
  const names = new Map(files.map((file) => [pathToFileURL(file).href, file]))
  const diagnostics = new Map<string, readonly string[]>()
  const initialized = Promise.withResolvers<void>()
  const all = Promise.withResolvers<void>()
  server.stdout?.on(
    'data',
    reader((message) => {
      const { id, method, params } = message
      if (id === 1 && method === undefined) return initialized.resolve()
      // It asks for settings; every request has to be answered.
      if (id !== undefined && method !== undefined)
        return send({
          id,
          result: method === 'workspace/configuration' ? params?.items?.map(() => ({ validate: true })) : null,
        })
      const file = names.get(decodeURIComponent(params?.uri ?? '')) ?? names.get(params?.uri ?? '')
      if (method !== 'textDocument/publishDiagnostics' || file === undefined) return
      diagnostics.set(file, params?.diagnostics?.map((one) => one.message) ?? [])
      if (diagnostics.size === files.length) all.resolve()
    }),
  )
  const capabilities = { workspace: { configuration: true }, textDocument: { publishDiagnostics: {} } }
  send({ id: 1, method: 'initialize', params: { processId: process.pid, rootUri: null, capabilities } })
  const deadline = setTimeout(() => all.reject(new Error('the language server does not answer')), ANSWER_MS)
  try {
    await Promise.race([initialized.promise, all.promise])
    send({ method: 'initialized', params: {} })
    for (const [uri, file] of names) {
      const textDocument = { uri, languageId: 'yaml', version: 1, text: readFileSync(file, 'utf8') }
      send({ method: 'textDocument/didOpen', params: { textDocument } })
    }
    await all.promise
    return diagnostics
  } finally {
    clearTimeout(deadline)
  }
}

/** Takes the messages out of the stream: a header with the length, an empty line, JSON. */
function reader(take: (message: Message) => void): (chunk: Buffer) => void {
  let kept = Buffer.alloc(0)
  return (chunk) => {
    kept = Buffer.concat([kept, chunk])
    for (;;) {
      const end = kept.indexOf('\r\n\r\n')
      const length = Number(/Content-Length: (\d+)/i.exec(kept.toString('latin1', 0, Math.max(end, 0)))?.[1])
      if (end === -1 || kept.length < end + 4 + length) return
      const body = kept.toString('utf8', end + 4, end + 4 + length)
      kept = kept.subarray(end + 4 + length)
      take(JSON.parse(body) as Message)
    }
  }
}
