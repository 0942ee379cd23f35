/** A defect of a configuration, and the message expected of all commands. */
export interface BrokenSetup {
  readonly name: string
  /** Beside or instead of the files that work. */
  readonly files: Readonly<Record<string, string | Buffer>>
  /** The file, and what begins at the place in it that is named. */
  readonly at: readonly [file: string, needle: string]
  /** The routes that are named; none for what belongs to none. */
  readonly routes: readonly string[]
  readonly says: RegExp
}

interface Parts {
  readonly spec?: string
  readonly route?: string
}

/** A ProxyConfig with the route `github`, and more in its spec or route. */
export const proxyFile = ({ spec = '', route = '' }: Parts = {}): string => `# Who may reach what.
apiVersion: extauth.dev/v1alpha1
kind: ProxyConfig
metadata: { name: local }
spec:
  ${spec.includes('auth:') ? '' : 'auth: { mode: anonymous }'}
  ${spec}
  routes:
    - name: github
      path: /github
      target: https://127.0.0.1:1
      externalAuthConfigRef: { name: token }
      ${route}
`

/** The MCPExternalAuthConfig of the route. */
export const authFile = (spec = 'type: bearerToken\n  bearerToken: { tokenSecretRef: { name: a, key: b } }'): string =>
  `apiVersion: extauth.dev/v1alpha1
kind: MCPExternalAuthConfig
metadata: { name: token }
spec:
  ${spec}
`

export const GOOD = { 'proxy.yaml': proxyFile(), 'auth.yaml': authFile(), 'secrets/a/b': 'a-token' }

/** Settings of the process. */
export const ofProcess = (
  name: string,
  spec: string,
  needle: string,
  says: RegExp,
  files: BrokenSetup['files'] = {},
): BrokenSetup => ({
  name,
  files: { 'proxy.yaml': proxyFile({ spec }), ...files },
  at: ['proxy.yaml', needle],
  routes: [],
  says,
})

/** An `auth` section with one provider, and more about it. */
export const section = (more: string): string =>
  `{ mode: oauth, oauth: { resourceUrl: "https://mcp.example.com", providers: [{ name: idp, issuerUrl: "https://127.0.0.1:1", audience: a, ${more} }] } }`
