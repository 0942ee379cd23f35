import { command, type Commands } from '../command.ts'
import { EXIT, VERSION, versionLine } from '../../compose/index.ts'
import { oneOf } from '../options/option-values.ts'
import type { CommandSpec } from '../options/options.ts'

const VERSION_SPEC: CommandSpec = {
  name: 'extauth version',
  summary: 'Prints the version.',
  options: {
    output: { type: 'string', is: oneOf(['text', 'json']), value: 'text|json', help: 'Default text.' },
  },
  notes: 'Exit code: 0.',
}

const runVersion = command(VERSION_SPEC, ({ options, io }) => {
  const json = { name: 'mcp-extauth', version: VERSION, node: process.versions.node }
  io.stdout(options.text('output') === 'json' ? `${JSON.stringify(json)}\n` : `${versionLine()}\n`)
  return EXIT.fine
})

/** All commands of `extauth`, in the order of `--help`. */
export const COMMANDS: Commands = {
  proxy: {
    summary: 'Runs the proxy in front of MCP servers.',
    load: async () => (await import('../proxy.ts')).runProxyCommand,
  },
  stdio: {
    summary: 'Bridges MCP over standard input and output to an HTTP server.',
    load: async () => (await import('../stdio.ts')).runStdio,
  },
  login: {
    summary: 'Logs in to an MCP server before `stdio --login` needs it.',
    load: async () => (await import('../login.ts')).runLogin,
  },
  logout: {
    summary: 'Deletes logins of `stdio --login` and revokes their tokens.',
    load: async () => (await import('../logout.ts')).runLogout,
  },
  registry: {
    summary: 'Runs the registry server, which lists MCP servers.',
    load: async () => (await import('../registry.ts')).runRegistry,
  },
  operator: {
    summary: 'Runs the Kubernetes operator: controller and admission webhooks.',
    load: async () => (await import('../operator.ts')).runOperatorCommand,
  },
  lab: {
    summary: 'Runs the proxy with demo services; `lab token` prints a token.',
    load: async () => (await import('../../../lab/cli/index.ts')).runLab,
    commands: {
      token: async () => (await import('../../../lab/cli/index.ts')).runLabToken,
      login: async () => (await import('../../../lab/cli/index.ts')).runLabLogin,
      connect: async () => (await import('../../../lab/cli/index.ts')).runLabConnect,
    },
  },
  init: {
    summary: 'Writes a commented configuration for one type of external auth.',
    load: async () => (await import('../init.ts')).runInit,
  },
  explain: {
    summary: 'Explains which role and headers a caller gets, offline.',
    load: async () => (await import('../explain.ts')).runExplain,
  },
  check: {
    summary: 'Tests every dependency (IdP, STS, backend) without serving traffic.',
    load: async () => (await import('../check.ts')).runCheck,
  },
  test: {
    summary: 'Tests role rules against expected roles, offline.',
    load: async () => (await import('../test.ts')).runTest,
  },
  validate: {
    summary: 'Validates configuration files, offline.',
    load: async () => (await import('../validate.ts')).runValidate,
  },
  convert: {
    summary: 'Converts ToolHive manifests; reports unsupported fields.',
    load: async () => (await import('../convert.ts')).runConvert,
    commands: { cedar: async () => (await import('../convert-cedar.ts')).runConvertCedar },
  },
  connections: {
    summary: 'Lists connected accounts of a running proxy, or ends them.',
    load: async () => (await import('../connections.ts')).runConnections,
  },
  health: {
    summary: 'Asks a running process whether it is healthy.',
    load: async () => (await import('../health.ts')).runHealth,
  },
  schema: {
    summary: 'Prints JSON Schemas and CustomResourceDefinitions.',
    load: async () => (await import('../schema.ts')).runSchema,
  },
  completion: {
    summary: 'Prints a shell completion script.',
    load: async () => (await import('../completion/completion.ts')).completionOf(COMMANDS),
  },
  version: { summary: VERSION_SPEC.summary, load: () => Promise.resolve(runVersion) },
}
