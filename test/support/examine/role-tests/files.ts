import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import type { Io } from '../../../../src/compose/io.ts'
import { main } from '../../../../src/cli/commands/index.ts'

/** A ProxyConfig with two routes to one config with roles, and one without. */
export const CONFIG = `
apiVersion: extauth.dev/v1alpha1
kind: ProxyConfig
metadata: { name: local }
spec:
  listen: { address: "127.0.0.1:0" }
  auth:
    mode: oauth
    oauth:
      resourceUrl: https://mcp.example.com
      providers: [{ name: idp, issuerUrl: "https://issuer.example", audience: mcp }]
  routes:
    - { name: aws, path: /aws, target: "https://backend.example/mcp", externalAuthConfigRef: { name: aws } }
    - { name: strict, path: /strict, target: "https://backend.example/mcp", externalAuthConfigRef: { name: aws }, onMatcherError: deny }
    - { name: github, path: /github, target: "https://api.example/mcp", externalAuthConfigRef: { name: github } }
---
apiVersion: extauth.dev/v1alpha1
kind: MCPExternalAuthConfig
metadata: { name: aws }
spec:
  type: cloudSts
  cloudSts:
    region: eu-central-1
    roleMappings:
      - { claim: readers, roleArn: "arn:aws:iam::123456789012:role/reader" }
      - { matcher: 'claims.dept == "x"', roleArn: "arn:aws:iam::123456789012:role/dept", priority: 1 }
      - { matcher: 'has(claims.team) && claims.team == null', roleArn: "arn:aws:iam::123456789012:role/no-team", priority: 2 }
---
apiVersion: extauth.dev/v1alpha1
kind: MCPExternalAuthConfig
metadata: { name: github }
spec: { type: bearerToken, bearerToken: { tokenSecretRef: { name: github, key: token } } }
`
export const ROLE = (name: string): string => `arn:aws:iam::123456789012:role/${name}`

const encode = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url')
/** An unsigned token with these claims. */
export const tokenOf = (claims: object): string => `${encode({ alg: 'RS256' })}.${encode(claims)}.c2ln`

/** A RoleTest document with these cases. */
export const cases = (...list: readonly object[]): string =>
  JSON.stringify({
    apiVersion: 'extauth.dev/v1alpha1',
    kind: 'RoleTest',
    metadata: { name: 'roles' },
    spec: { cases: list },
  })

export interface Folder {
  readonly directory: string
  write(name: string, text: string): Promise<string>
  read(name: string): Promise<string>
  remove(): Promise<void>
}

export async function folder(files: Readonly<Record<string, string>>): Promise<Folder> {
  const directory = await mkdtemp(path.join(tmpdir(), 'roles-'))
  const write = async (name: string, text: string): Promise<string> => {
    await writeFile(path.join(directory, name), text)
    return path.join(directory, name)
  }
  for (const [name, text] of Object.entries(files)) await write(name, text)
  return {
    directory,
    write,
    read: (name) => readFile(path.join(directory, name), 'utf8'),
    remove: () => rm(directory, { recursive: true, force: true }),
  }
}

/** Runs the command line as a process would. */
export async function extauth(
  argv: readonly string[],
  stdin = '',
): Promise<{ readonly code: number; readonly out: string; readonly err: string }> {
  let out = ''
  let err = ''
  const io: Io = {
    stdout: (text) => void (out += text),
    stderr: (text) => void (err += text),
    env: {},
    stdin: () => Promise.resolve(stdin),
    stop: new Promise(() => {}),
    onReload: () => undefined,
  }
  const code = await main(argv, io)
  return { code, out, err }
}
