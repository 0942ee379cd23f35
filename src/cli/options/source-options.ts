import { API_GROUP, DIRECTORY, FILE, FILE_AND_NAME, HTTP_URL, LISTEN_ADDRESS, NAMESPACE } from './option-values.ts'
import type { Io, ProxySources } from '../../compose/index.ts'
import { STDIN } from '../../load/index.ts'
import type { CommandSpec, OptionSpec, Parsed } from './options.ts'

const IGNORE_MANIFEST_CALLERS = {
  type: 'boolean',
  help: 'Ignores oidcConfig, authzConfig, … in manifests.',
} as const satisfies OptionSpec
const GROUP = {
  type: 'string',
  is: API_GROUP,
  value: 'GROUP',
  help: 'API group of the resources. Default extauth.dev.',
} as const satisfies OptionSpec

/** The repeatable `--config` of commands that read a configuration. */
export const configOption = (help: string): OptionSpec => ({
  type: 'string',
  short: 'c',
  is: FILE,
  multiple: true,
  value: 'PATH',
  help,
})

/** Manifest options of commands that run nothing: `explain` and `test`. */
export const MANIFEST_OPTIONS = {
  callers: { type: 'string', is: FILE, value: 'FILE', help: 'File with an `auth` section, for manifests.' },
  'ignore-manifest-callers': IGNORE_MANIFEST_CALLERS,
  namespace: { type: 'string', is: NAMESPACE, value: 'NAME', help: 'Namespace to use if the files have several.' },
  'api-group': GROUP,
} as const satisfies CommandSpec['options']

/** Configuration sources of `proxy` and `validate`. */
export const SOURCE_OPTIONS = {
  target: { type: 'string', is: HTTP_URL, value: 'URL', help: 'Short form: MCP server URL, served at /.' },
  'external-auth': {
    type: 'string',
    is: FILE_AND_NAME,
    value: 'FILE[#NAME]',
    help: 'Short form: file with its MCPExternalAuthConfig.',
  },
  callers: {
    type: 'string',
    is: FILE,
    value: 'FILE',
    help: 'File with an `auth` section, for manifests and the short form.',
  },
  'ignore-manifest-callers': IGNORE_MANIFEST_CALLERS,
  listen: {
    type: 'string',
    is: LISTEN_ADDRESS,
    value: 'ADDR',
    help: 'Listen address: host:port, :port or unix:/path. Default 127.0.0.1:8080.',
  },
  admin: {
    type: 'string',
    is: LISTEN_ADDRESS,
    value: 'ADDR',
    help: 'Admin listener: health, readiness, metrics. Default 127.0.0.1:8081.',
  },
  'secrets-dir': {
    type: 'string',
    is: DIRECTORY,
    value: 'DIR',
    help: 'Secrets directory with files NAME/KEY. Default ./secrets.',
  },
  namespace: {
    type: 'string',
    is: NAMESPACE,
    value: 'NAME',
    help: 'Namespace to serve if the files have several.',
  },
  'api-group': GROUP,
  'sts-endpoint': {
    type: 'string',
    is: HTTP_URL,
    value: 'URL',
    help: 'STS endpoint for all routes. Default stsEndpoint, AWS_ENDPOINT_URL_STS or the regional endpoint.',
  },
} as const satisfies CommandSpec['options']

/** Reads standard input if one of the paths is `-`. */
export async function stdinFor(
  configPaths: readonly string[],
  io: Partial<Pick<Io, 'stdin'>>,
): Promise<string | undefined> {
  return configPaths.includes(STDIN) ? io.stdin?.() : undefined
}

/** Sources as `loadSources` takes them. */
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
