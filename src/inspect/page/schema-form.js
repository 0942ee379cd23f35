import { html, Text, useState } from './html.js'

const SIMPLE = new Set(['string', 'number', 'integer', 'boolean'])

/** The kind of field that a property gets; what is not simple is written as JSON. */
export function fieldOf(schema) {
  if (Array.isArray(schema?.enum) && schema.enum.every((value) => typeof value !== 'object')) return 'choice'
  const types = [schema?.type ?? []].flat().filter((type) => type !== 'null')
  if (types.length === 1 && SIMPLE.has(types[0])) return types[0]
  return 'json'
}

/** Initial values of the fields. */
export function startOf(schema) {
  const fields = Object.entries(schema?.properties ?? {}).map(([name, property]) => {
    const { default: value } = property ?? {}
    if (fieldOf(property) === 'boolean') return [name, value === undefined ? '' : String(value)]
    if (value === undefined) return [name, '']
    return [name, typeof value === 'object' ? JSON.stringify(value) : String(value)]
  })
  return Object.fromEntries(fields)
}

function valueOf(text, schema, name) {
  switch (fieldOf(schema)) {
    case 'string':
      return text
    case 'boolean':
      return text === 'true'
    case 'choice':
      return schema.enum.find((value) => String(value) === text)
    case 'number':
    case 'integer': {
      const number = Number(text)
      if (Number.isNaN(number)) throw new Error(`${name} must be a number`)
      return number
    }
    default:
      try {
        return JSON.parse(text)
      } catch {
        throw new Error(`${name} must be JSON`)
      }
  }
}

/** The arguments that the fields stand for; empty ones are left out. Throws with a sentence for what can't be read. */
export function argumentsOf(schema, texts) {
  const required = new Set(schema?.required ?? [])
  const args = {}
  for (const [name, property] of Object.entries(schema?.properties ?? {})) {
    const text = texts[name] ?? ''
    if (text === '' && !(required.has(name) && fieldOf(property) === 'string')) {
      if (required.has(name)) throw new Error(`${name} is required`)
    } else args[name] = valueOf(text, property, name)
  }
  return args
}

function Field({ name, schema, isRequired, text, onText }) {
  const kind = fieldOf(schema)
  const onInput = (event) => onText(event.target.value)
  const common = {
    name,
    value: text,
    onInput,
    id: `argument-${name}`,
    'aria-describedby': schema?.description ? `about-${name}` : undefined,
  }
  const options = kind === 'boolean' ? ['true', 'false'] : kind === 'choice' ? schema.enum.map(String) : []
  return html`<div class="field">
    <label for=${`argument-${name}`}
      ><${Text} of=${schema?.title ?? name} />${isRequired ? html` <small>required</small>` : null}</label
    >
    ${
      kind === 'boolean' || kind === 'choice'
        ? html`<select ...${common} onChange=${onInput}>
            <option value="">${isRequired ? 'choose' : 'leave out'}</option>
            ${options.map((value) => html`<option key=${value} value=${value} selected=${value === text}>${value}</option>`)}
          </select>`
        : kind === 'json'
          ? html`<textarea ...${common} rows="3" spellcheck="false" placeholder="JSON"></textarea>`
          : html`<input
              ...${common}
              type=${kind === 'string' ? 'text' : 'number'}
              step=${kind === 'integer' ? '1' : 'any'}
              min=${schema?.minimum}
              max=${schema?.maximum}
            />`
    }
    ${schema?.description ? html`<small id=${`about-${name}`}><${Text} of=${schema.description} /></small>` : null}
  </div>`
}

/** A form for an input schema, or a JSON editor. Calls `onSubmit` with the arguments. */
export function SchemaForm({ schema, label, isBusy, onSubmit }) {
  const [texts, setTexts] = useState(() => startOf(schema))
  const [raw, setRaw] = useState(undefined)
  const [error, setError] = useState('')
  const names = Object.keys(schema?.properties ?? {})
  const read = () => {
    if (raw === undefined) return argumentsOf(schema, texts)
    try {
      return JSON.parse(raw)
    } catch {
      throw new Error('The arguments must be a JSON object')
    }
  }
  const submit = (event) => {
    event.preventDefault()
    try {
      const args = read()
      setError('')
      onSubmit(args)
    } catch (failure) {
      setError(failure.message)
    }
  }
  const toggle = () => {
    if (raw !== undefined) {
      setRaw(undefined)
      return
    }
    try {
      setRaw(JSON.stringify(argumentsOf(schema, texts), null, 2))
    } catch {
      setRaw('{}')
    }
  }
  return html`<form class="arguments" onSubmit=${submit} aria-label="Arguments" novalidate>
    ${
      raw === undefined
        ? names.map(
            (name) =>
              html`<${Field}
                key=${name}
                name=${name}
                schema=${schema.properties[name]}
                isRequired=${schema.required?.includes(name) ?? false}
                text=${texts[name] ?? ''}
                onText=${(text) => setTexts({ ...texts, [name]: text })}
              />`,
          )
        : html`<textarea
            name="raw"
            aria-label="Arguments as JSON"
            rows="8"
            spellcheck="false"
            value=${raw}
            onInput=${(event) => setRaw(event.target.value)}
          ></textarea>`
    }
    ${error ? html`<p role="alert">${error}</p>` : null}
    <p class="actions">
      <button type="submit" class="main" disabled=${isBusy}>${label}</button>
      <button type="button" onClick=${toggle}>${raw === undefined ? 'Write JSON' : 'Use the form'}</button>
    </p>
  </form>`
}
