import type { Commands } from './command.ts'
import { EXIT, versionLine } from '../compose/index.ts'
import { type CommandSpec, parseOptions, renderHelp } from './options/options.ts'

const VERSION_SPEC: CommandSpec = { name: 'extauth version', summary: 'Prints the version.', options: {} }

/** Every command of `extauth`, in the order of `--help`. */
export const COMMANDS: Commands = {
  proxy: {
    summary: 'Runs the proxy in front of MCP servers.',
    load: async () => (await import('./proxy.ts')).runProxyCommand,
    specs: async () => [(await import('./proxy.ts')).PROXY_SPEC],
  },
  stdio: {
    summary: 'Speaks MCP on standard input and output, for clients that can only start a command.',
    load: async () => (await import('./stdio.ts')).runStdio,
    specs: async () => [(await import('./options/index.ts')).STDIO_SPEC],
  },
  login: {
    summary: 'Logs you in at an MCP server, ahead of `stdio --login`.',
    load: async () => (await import('./login.ts')).runLogin,
    specs: async () => [(await import('./login.ts')).LOGIN_SPEC],
  },
  logout: {
    summary: 'Forgets logins of `stdio --login`, and revokes their tokens.',
    load: async () => (await import('./login.ts')).runLogout,
    specs: async () => [(await import('./login.ts')).LOGOUT_SPEC],
  },
  registry: {
    summary: 'Runs the registry server, which lists MCP servers to authenticated callers.',
    load: async () => (await import('./registry.ts')).runRegistry,
    specs: async () => [(await import('./registry.ts')).REGISTRY_SPEC],
  },
  operator: {
    summary: 'Runs the Kubernetes operator: controller and admission webhooks.',
    load: async () => (await import('./operator.ts')).runOperatorCommand,
    specs: async () => [(await import('./operator-options.ts')).OPERATOR_SPEC],
  },
  lab: {
    summary: 'Runs the proxy with local stand-ins for everything it talks to; `lab token` prints a token.',
    load: async () => (await import('../../lab/cli/index.ts')).runLab,
    specs: async () => [
      (await import('../../lab/cli/index.ts')).LAB_SPEC,
      (await import('../../lab/cli/index.ts')).LAB_TOKEN_SPEC,
      (await import('../../lab/cli/index.ts')).LAB_LOGIN_SPEC,
    ],
  },
  init: {
    summary: 'Writes a commented configuration for one type of external auth, with its secrets folder.',
    load: async () => (await import('./init.ts')).runInit,
    specs: async () => [(await import('./init.ts')).INIT_SPEC],
  },
  explain: {
    summary: 'Says which role and headers a caller would get, and why. No network.',
    load: async () => (await import('./explain.ts')).runExplain,
    specs: async () => [(await import('./explain.ts')).EXPLAIN_SPEC],
  },
  check: {
    summary: 'Goes where requests would go, and says what is wrong before there is traffic.',
    load: async () => (await import('./check.ts')).runCheck,
    specs: async () => [(await import('./check.ts')).CHECK_SPEC],
  },
  test: {
    summary: 'Runs cases against the role rules: which caller gets which role. No network.',
    load: async () => (await import('./test.ts')).runTest,
    specs: async () => [(await import('./test.ts')).TEST_SPEC],
  },
  validate: {
    summary: 'Checks files and lists every problem with its place.',
    load: async () => (await import('./validate.ts')).runValidate,
    specs: async () => [(await import('./validate.ts')).VALIDATE_SPEC],
  },
  schema: {
    summary: 'Prints the JSON Schemas and the CustomResourceDefinition.',
    load: async () => (await import('./schema.ts')).runSchema,
    specs: async () => [(await import('./schema.ts')).SCHEMA_SPEC],
  },
  completion: {
    summary: 'Prints what makes a shell complete commands, options and values.',
    load: async () => (await import('./completion/completion.ts')).completionOf(COMMANDS),
    specs: async () => [(await import('./completion/completion.ts')).COMPLETION_SPEC],
  },
  version: {
    summary: 'Prints the version.',
    load: () =>
      Promise.resolve((argv, io) => {
        const options = parseOptions(VERSION_SPEC, argv, io.env)
        io.stdout(options === 'help' ? renderHelp(VERSION_SPEC) : `${versionLine()}\n`)
        return Promise.resolve(EXIT.fine)
      }),
    specs: () => Promise.resolve([VERSION_SPEC]),
  },
}
