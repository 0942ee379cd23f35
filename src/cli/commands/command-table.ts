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

/** Every command of `extauth`, in the order of `--help`. */
export const COMMANDS: Commands = {
  proxy: {
    summary: 'Runs the proxy in front of MCP servers.',
    load: async () => (await import('../proxy.ts')).runProxyCommand,
  },
  stdio: {
    summary: 'Speaks MCP on standard input and output, for clients that can only start a command.',
    load: async () => (await import('../stdio.ts')).runStdio,
  },
  login: {
    summary: 'Logs you in at an MCP server, ahead of `stdio --login`.',
    load: async () => (await import('../login.ts')).runLogin,
  },
  logout: {
    summary: 'Forgets logins of `stdio --login`, and revokes their tokens.',
    load: async () => (await import('../logout.ts')).runLogout,
  },
  registry: {
    summary: 'Runs the registry server, which lists MCP servers to authenticated callers.',
    load: async () => (await import('../registry.ts')).runRegistry,
  },
  operator: {
    summary: 'Runs the Kubernetes operator: controller and admission webhooks.',
    load: async () => (await import('../operator.ts')).runOperatorCommand,
  },
  lab: {
    summary: 'Runs the proxy with local stand-ins for everything it talks to; `lab token` prints a token.',
    load: async () => (await import('../../../lab/cli/index.ts')).runLab,
    commands: {
      token: async () => (await import('../../../lab/cli/index.ts')).runLabToken,
      login: async () => (await import('../../../lab/cli/index.ts')).runLabLogin,
    },
  },
  init: {
    summary: 'Writes a commented configuration for one type of external auth, with its secrets folder.',
    load: async () => (await import('../init.ts')).runInit,
  },
  explain: {
    summary: 'Says which role and headers a caller would get, and why. No network.',
    load: async () => (await import('../explain.ts')).runExplain,
  },
  check: {
    summary: 'Goes where requests would go, and says what is wrong before there is traffic.',
    load: async () => (await import('../check.ts')).runCheck,
  },
  test: {
    summary: 'Runs cases against the role rules: which caller gets which role. No network.',
    load: async () => (await import('../test.ts')).runTest,
  },
  validate: {
    summary: 'Checks files and lists every problem with its place.',
    load: async () => (await import('../validate.ts')).runValidate,
  },
  convert: {
    summary: 'Rewrites manifests of ToolHive as documents of ours, and says what can not be kept.',
    load: async () => (await import('../convert.ts')).runConvert,
  },
  schema: {
    summary: 'Prints the JSON Schemas and the CustomResourceDefinition.',
    load: async () => (await import('../schema.ts')).runSchema,
  },
  completion: {
    summary: 'Prints what makes a shell complete commands, options and values.',
    load: async () => (await import('../completion/completion.ts')).completionOf(COMMANDS),
  },
  version: { summary: VERSION_SPEC.summary, load: () => Promise.resolve(runVersion) },
}
