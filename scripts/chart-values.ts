import { parse } from 'yaml'

interface Schema {
  readonly description?: string
  readonly properties?: Readonly<Record<string, Schema>>
}

const BEGIN = '<!-- values -->\n'
const END = '<!-- /values -->\n'

/** The README of the chart with a table of its values: descriptions of values.schema.json, defaults of values.yaml. */
export function withChartValues(readme: string, schema: string, values: string): string {
  const [begin, end] = [readme.indexOf(BEGIN), readme.indexOf(END)]
  if (begin < 0 || end < begin)
    throw new Error(`README.md of the chart has no "${BEGIN.trim()}" before "${END.trim()}"`)
  const rows = rowsOf('', JSON.parse(schema) as Schema, parse(values))
  const table = `\n| value | default | description |\n| --- | --- | --- |\n${rows.join('')}\n`
  return readme.slice(0, begin + BEGIN.length) + table + readme.slice(end)
}

function rowsOf(prefix: string, { properties = {} }: Schema, defaults: unknown): string[] {
  const known = defaults as Readonly<Record<string, unknown>>
  return Object.entries(properties)
    .filter(([name]) => name !== 'global')
    .flatMap(([name, schema]) => {
      const value = known[name]
      if (value === undefined) throw new Error(`values.yaml of the chart lacks ${prefix}${name}`)
      if (schema.description === undefined && schema.properties !== undefined)
        return rowsOf(`${prefix}${name}.`, schema, value)
      if (schema.description === undefined) throw new Error(`values.schema.json has no description of ${prefix}${name}`)
      return [`| \`${prefix}${name}\` | ${shown(value)} | ${schema.description} |\n`]
    })
}

const shown = (value: unknown): string => (value === '' ? 'empty' : `\`${JSON.stringify(value).replaceAll('"', '')}\``)
