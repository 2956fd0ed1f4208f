// In which form does the client want its answer? JSON always, YAML when preferred; whole objects, tables or metadata only.
import { notAcceptable, StatusError } from '../../api/status-error.ts'
import { acceptedTypes } from './codec.ts'

export interface Form {
  readonly media: 'json' | 'yaml'
  readonly as: 'object' | 'table' | 'metadata'
  /** The partial metadata was asked for a list. */
  readonly list?: boolean
  /** The version of meta.k8s.io that tables and partial metadata come in. */
  readonly metaVersion: 'meta.k8s.io/v1' | 'meta.k8s.io/v1beta1'
}

const plainForm: Form = { media: 'json', as: 'object', metaVersion: 'meta.k8s.io/v1' }

/** The first form in the header that we can give; the order of the header decides, as in Kubernetes. */
export function negotiate(accept: string | undefined): Form {
  if (accept === undefined || accept.trim() === '') return plainForm
  const choices = accept.split(',').slice(0, 50)
  for (const choice of choices) {
    const form = formOf(choice)
    if (form !== undefined) return form
  }
  // A type we speak, in a shape we do not know.
  if (choices.some((choice) => mediaOf(choice.split(';', 1)[0]?.trim().toLowerCase() ?? '') !== undefined)) {
    throw notAcceptable(acceptedTypes)
  }
  throw new StatusError(406, 'NotAcceptable', '406: Not Acceptable', {})
}

function formOf(choice: string): Form | undefined {
  const [type = '', ...parameters] = choice.split(';').map((part) => part.trim())
  const media = mediaOf(type.toLowerCase())
  if (media === undefined) return undefined
  const given = new Map(parameters.map((parameter) => splitOnce(parameter)))
  const as = given.get('as')
  if (as === undefined) return { ...plainForm, media }
  if (given.get('g') !== 'meta.k8s.io') return undefined
  const version = given.get('v') ?? 'v1'
  if (version !== 'v1' && version !== 'v1beta1') return undefined
  const metaVersion = `meta.k8s.io/${version}` as const
  if (as === 'Table') return { media, as: 'table', metaVersion }
  if (as === 'PartialObjectMetadata') return { media, as: 'metadata', metaVersion }
  if (as === 'PartialObjectMetadataList') return { media, as: 'metadata', list: true, metaVersion }
  return undefined
}

function mediaOf(type: string): 'json' | 'yaml' | undefined {
  if (type === 'application/json' || type === '*/*' || type === 'application/*') return 'json'
  if (type === 'application/yaml') return 'yaml'
  return undefined
}

function splitOnce(text: string): [string, string] {
  const at = text.indexOf('=')
  return at < 0 ? [text, ''] : [text.slice(0, at), text.slice(at + 1)]
}
