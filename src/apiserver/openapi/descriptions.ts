// What does `kubectl explain` say about a kind or a field? The sentences of the kinds' definitions, some for what all kinds
// share, and the name itself for everything else.
import { kindNames, kinds } from '../../api/kinds.ts'
import { fieldTexts } from './field-texts.ts'

export function describeMessage(message: string): string {
  return messageTexts[message] ?? kindTexts[message] ?? `${sentenceOf(message.split('.')[1] ?? message)}.`
}

export function describeField(message: string, field: string): string {
  return (
    fieldTexts[`${message}.${field}`] ??
    kindTexts[`${message}.${field}`] ??
    commonTexts[field] ??
    `${sentenceOf(field)}.`
  )
}

/** `volumeLifecycleModes` → "Volume lifecycle modes" */
function sentenceOf(name: string): string {
  const words = name
    .replaceAll(/([a-z0-9])([A-Z])/g, '$1 $2')
    .replaceAll(/([A-Z])([A-Z][a-z])/g, '$1 $2')
    .split(' ')
    .map((word) => (/^[A-Z][a-z]*$/.test(word) ? word.toLowerCase() : word))
  const text = words.join(' ')
  return text.charAt(0).toUpperCase() + text.slice(1)
}

/** What the definitions say, by message (`core.PodSpec`) and by field (`core.PodSpec.volumes`). */
const kindTexts: Readonly<Record<string, string>> = Object.fromEntries(
  kindNames.flatMap((name) => {
    const { message, description, fieldDescriptions } = kinds[name]
    const [group = ''] = message.split('.')
    const fields = Object.entries(fieldDescriptions).map(([field, text]) => [`${group}.${field}`, text])
    return [[message, description], ...fields]
  }),
)

const messageTexts: Readonly<Record<string, string>> = {
  'meta.ObjectMeta': 'What every object has: its name, labels, owners and versions.',
  'meta.ListMeta': 'What every list has: its version and where to continue.',
  'meta.LabelSelector': 'Selects objects by their labels; all conditions must hold.',
  'meta.OwnerReference': 'An object that this one belongs to and is deleted with.',
  'meta.ManagedFieldsEntry': 'Which fields one manager has set, and how.',
  'meta.DeleteOptions': 'How an object is to be deleted.',
  'meta.Status': 'The answer to a request that returns no object.',
  'meta.Time': 'A time as in RFC 3339, whole seconds.',
  'meta.MicroTime': 'A time as in RFC 3339, with microseconds.',
  'resource.Quantity': 'An amount such as 10Gi or 500m.',
  'intstr.IntOrString': 'A number, or a text such as a name or a percentage.',
}

/** Fields that mean the same wherever they stand. */
const commonTexts: Readonly<Record<string, string>> = {
  metadata: 'The name, labels, owners and versions of the object.',
  spec: 'What is wanted.',
  status: 'What is; written by the system.',
  name: 'The name.',
  namespace: 'The namespace.',
  labels: 'Keys and values to select the object by.',
  annotations: 'Keys and values for tools; never used to select.',
  readOnly: 'Whether writing is refused.',
  fsType: 'The filesystem to mount, such as ext4.',
  conditions: 'What has been observed lately.',
  reason: 'One word for machines.',
  message: 'One sentence for people.',
  phase: 'Where the object is in its life.',
  uid: 'The identity of the object, never reused.',
  parameters: 'Settings that only the driver understands.',
  secretRef: 'The secret that holds the credentials.',
}
