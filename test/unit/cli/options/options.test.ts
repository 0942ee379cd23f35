import { describe, expect, it } from 'vitest'
import {
  type CommandSpec,
  misspelledVariables,
  type Parsed,
  parseOptions,
  renderHelp,
  type ValueKind,
} from '../../../../src/cli/options/options.ts'
import { UsageError } from '../../../../src/compose/io.ts'

const any: ValueKind = { expected: 'anything', accepts: () => true }
const spec: CommandSpec = {
  name: 'extauth proxy',
  summary: 'Runs the proxy.',
  positionals: '[FILE…]',
  options: {
    config: { type: 'string', short: 'c', is: any, multiple: true, value: 'PATH', help: 'A file.' },
    'sts-endpoint': { type: 'string', is: any, value: 'URL', help: 'Where STS is.' },
    'show-claims': { type: 'boolean', help: 'Shows claims.' },
  },
}
const parse = (argv: string[], env: Record<string, string> = {}): Parsed => {
  const parsed = parseOptions(spec, argv, env)
  if (parsed === 'help') throw new Error('help')
  return parsed
}

describe('options', () => {
  it('reads long options, repeated ones in order, and positionals', () => {
    const parsed = parse(['--config', 'a', '--config=b', '--sts-endpoint', 'http://x', 'file'])
    expect(parsed.list('config')).toEqual(['a', 'b'])
    expect(parsed.text('sts-endpoint')).toBe('http://x')
    expect(parsed.flag('show-claims')).toBe(false)
    expect(parsed.positionals).toEqual(['file'])
  })

  it('reads one letter for an option that has one', () => {
    expect(parse(['-c', 'a', '-cb', '-c', '-', '--config', 'd']).list('config')).toEqual(['a', 'b', '-', 'd'])
    expect(renderHelp(spec)).toMatch(/^ {2}-c, --config PATH .*\n {6}--sts-endpoint URL /m)
  })

  it('shows in the help an option of the command itself, and none where it has none', () => {
    expect(renderHelp(spec)).toContain('--config is EXTAUTH_CONFIG.')
    const bare = renderHelp({ ...spec, options: {} })
    expect(bare).not.toMatch(/EXTAUTH_|\[options\]/)
  })

  it('finds a variable that looks like an option, unless another command has it', async () => {
    const env = {
      EXTAUTH_STS_ENDPIONT: 'a',
      EXTAUTH_CONFIG: 'b',
      EXTAUTH_CONFGI: 'c',
      EXTAUTH_SERVICE_HOST: 'd',
      PATH: 'e',
    }
    const others = () => Promise.resolve(new Set(['EXTAUTH_CONFGI']))
    expect(await misspelledVariables(spec, env, others)).toEqual([
      { variable: 'EXTAUTH_STS_ENDPIONT', meant: 'EXTAUTH_STS_ENDPOINT' },
    ])
  })

  it('takes what is not given from the environment, and prefers what is given', () => {
    const env = { EXTAUTH_CONFIG: 'c,d', EXTAUTH_STS_ENDPOINT: 'http://env', EXTAUTH_SHOW_CLAIMS: 'true' }
    expect(parse([], env).list('config')).toEqual(['c', 'd'])
    expect(parse([], env).text('sts-endpoint')).toBe('http://env')
    expect(parse([], env).flag('show-claims')).toBe(true)
    expect(parse(['--sts-endpoint', 'http://arg', '--config', 'a'], env).text('sts-endpoint')).toBe('http://arg')
    expect(parse(['--config', 'a'], env).list('config')).toEqual(['a'])
  })

  it('treats an empty variable as not set', () => {
    expect(
      parse([], { EXTAUTH_STS_ENDPOINT: '', EXTAUTH_SHOW_CLAIMS: '', EXTAUTH_CONFIG: '' }).text('sts-endpoint'),
    ).toBeUndefined()
  })

  it.each([
    [['--confg', 'a'], 'Unknown option --confg. Did you mean --config? See extauth proxy --help.'],
    [['-x', 'a'], 'Unknown option -x. See extauth proxy --help.'],
    [['--help=1'], '--help takes no value. See extauth proxy --help.'],
    [['--zzzzzzzz'], 'Unknown option --zzzzzzzz. See extauth proxy --help.'],
    [['--config'], /argument missing.*See extauth proxy --help\./],
    [['--show-claims=yes'], /does not take an argument.*See extauth proxy --help\./],
  ])('refuses %j and says what is right', (argv, message) => {
    expect(() => parse(argv)).toThrow(UsageError)
    expect(() => parse(argv)).toThrow(message)
  })

  it('refuses a flag in the environment that is neither true nor false', () => {
    expect(() => parse([], { EXTAUTH_SHOW_CLAIMS: 'maybe' })).toThrow('EXTAUTH_SHOW_CLAIMS must be true or false')
  })

  it.each([
    [['--sts-endpoint', '-1m'], '-1m'],
    [['--sts-endpoint=-1m'], '-1m'],
    [['--sts-endpoint', '-.5s'], '-.5s'],
    [['--sts-endpoint', '-'], '-'],
  ])('%j: what looks like a negative number is a value', (argv, value) => {
    expect(parse(argv).text('sts-endpoint')).toBe(value)
  })

  it('leaves what follows -- alone', () => {
    expect(parse(['--', '--sts-endpoint', '-1m', '--help']).positionals).toEqual(['--sts-endpoint', '-1m', '--help'])
    expect(() => parse(['--show-claims', '-1m'])).toThrow(UsageError)
  })

  it('makes the help from the table', () => {
    expect(parseOptions(spec, ['--config', 'x', '--help'], {})).toBe('help')
    const help = renderHelp(spec)
    for (const [name, option] of Object.entries(spec.options)) {
      expect(help).toContain(`--${name}`)
      expect(help).toContain(option.help)
    }
    expect(help).toContain('Usage: extauth proxy [options] [FILE…]')
  })
})
