import { API_GROUP, DIRECTORY, FILE, FILE_AND_NAME, HTTP_URL, LISTEN_ADDRESS, NAMESPACE } from './option-values.ts'
import type { Io, ProxySources } from '../../compose/index.ts'
import { STDIN } from '../../load/index.ts'
import type { CommandSpec, OptionSpec, Parsed } from './options.ts'

const IGNORE_MANIFEST_CALLERS = {
  type: 'boolean',
  help: 'Leaves alone what manifests say about who may call (oidcConfig, authzConfig, …).',
} as const satisfies OptionSpec
const GROUP = {
  type: 'string',
  is: API_GROUP,
  value: 'GROUP',
  help: 'API group of the resources. Default extauth.dev.',
} as const satisfies OptionSpec

/** `--config`, which repeats, of every command that reads a configuration; `help` says what it is there. */
export const configOption = (help: string): OptionSpec => ({
  type: 'string',
  short: 'c',
  is: FILE,
  multiple: true,
  value: 'PATH',
  help,
})

/** How manifests are read by commands that run nothing: `explain` and `test` take the same. */
export const MANIFEST_OPTIONS = {
  callers: { type: 'string', is: FILE, value: 'FILE', help: 'An `auth` section, for manifests.' },
  'ignore-manifest-callers': IGNORE_MANIFEST_CALLERS,
  namespace: { type: 'string', is: NAMESPACE, value: 'NAME', help: 'The namespace where the files have several.' },
  'api-group': GROUP,
} as const satisfies CommandSpec['options']

/** What says, beside the files, which configuration a proxy runs: `proxy` and `validate` take the same. */
export const SOURCE_OPTIONS = {
  target: { type: 'string', is: HTTP_URL, value: 'URL', help: 'Short form: one route to this MCP server, at /.' },
  'external-auth': {
    type: 'string',
    is: FILE_AND_NAME,
    value: 'FILE[#NAME]',
    help: 'Short form: the MCPExternalAuthConfig for it.',
  },
  callers: { type: 'string', is: FILE, value: 'FILE', help: 'An `auth` section, for manifests and the short form.' },
  'ignore-manifest-callers': IGNORE_MANIFEST_CALLERS,
  listen: {
    type: 'string',
    is: LISTEN_ADDRESS,
    value: 'ADDR',
    help: 'host:port, :port or unix:/path. Default 127.0.0.1:8080.',
  },
  admin: {
    type: 'string',
    is: LISTEN_ADDRESS,
    value: 'ADDR',
    help: 'Health, readiness, metrics. Default 127.0.0.1:8081.',
  },
  'secrets-dir': {
    type: 'string',
    is: DIRECTORY,
    value: 'DIR',
    help: 'Secrets, one file NAME/KEY each. Default ./secrets.',
  },
  namespace: {
    type: 'string',
    is: NAMESPACE,
    value: 'NAME',
    help: 'Serves this namespace where the files have several.',
  },
  'api-group': GROUP,
  'sts-endpoint': {
    type: 'string',
    is: HTTP_URL,
    value: 'URL',
    help: 'STS for all; else stsEndpoint, AWS_ENDPOINT_URL_STS, the region.',
  },
} as const satisfies CommandSpec['options']

/** What the paths of a command read from standard input, if one of them is `-`. */
export async function stdinFor(
  configPaths: readonly string[],
  io: Partial<Pick<Io, 'stdin'>>,
): Promise<string | undefined> {
  return configPaths.includes(STDIN) ? io.stdin?.() : undefined
}

/** The same as `loadSources` takes it. */
export function sourcesFrom(
  options: Parsed,
  configPaths: readonly string[],
): ProxySources & { stsEndpoint: string | undefined } {
  return {
    configPaths,
    listen: options.text('listen'),
    admin: options.text('admin'),
    secretsDirectory: options.text('secrets-dir'),
    target: options.text('target'),
    externalAuth: options.text('external-auth'),
    callers: options.text('callers'),
    ignoreManifestCallers: options.flag('ignore-manifest-callers'),
    namespace: options.text('namespace'),
    apiGroup: options.text('api-group'),
    stsEndpoint: options.text('sts-endpoint'),
  }
}
