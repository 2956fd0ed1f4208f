// What did the driver say? Causes named by the status of a CSI call, the same for every call.
import type { CauseTable } from './cause.ts'

export const driverCauses = {
  driverNotOnNode: {
    title: 'The driver is not registered on the node',
    sentence: 'driver {driver} is not registered on node {node}',
    meaning:
      'Its process is not running there, or its socket was not announced. Nothing can be mounted or unmounted without it.',
    ends: 'The driver registers; waiting pods go on at once.',
    hints: [
      ['hawser get csinode {node} -o yaml', 'see which drivers the node has'],
      ['hawser driver check SOCKET', 'ask the driver directly'],
      ['hawser doctor', 'on the node: sockets'],
    ],
  },
  driverAbsent: {
    title: 'No node has the driver that must act',
    sentence: 'driver {driver} must {detail}, and no node has registered it',
    meaning:
      'Somebody must do it who knows the storage: the driver of the volume. Its process is down, its socket is not registered, or it runs with sidecars of its own outside of here.',
    ends: 'The driver registers; what waits goes on by itself.',
    hints: [
      ['hawser get csinode -o yaml', 'see which drivers are registered on which node'],
      ['hawser up --csi-driver {driver}=SOCKET', 'start with this driver'],
    ],
  },
  driverUnavailable: {
    title: 'The driver does not answer',
    sentence: 'driver {driver} cannot be reached (UNAVAILABLE)',
    meaning:
      'Its process is gone or its socket is closed. The effect of the call is unknown, so the same call is repeated.',
    ends: 'The driver is back.',
    hints: [
      ['hawser driver check SOCKET', 'ask it directly'],
      ['hawser doctor', 'on the node: sockets and processes'],
    ],
  },
  driverTimeout: {
    title: 'The driver took too long',
    sentence: 'driver {driver} did not answer in time; the call may still be running there',
    meaning:
      'DEADLINE_EXCEEDED or CANCELLED: the effect is unknown, so the same call is repeated until there is an answer.',
    ends: 'A later call is answered.',
    hints: [['hawser get operations', 'how often it was tried']],
  },
  driverBusy: {
    title: 'The driver is still busy with an earlier call',
    sentence: 'driver {driver} answers that an operation on this volume is already under way (ABORTED)',
    meaning: 'An earlier call, perhaps given up by us, still runs in the driver.',
    ends: 'The driver finishes it.',
    hints: [['hawser get operations', 'how often it was tried']],
  },
  outOfCapacity: {
    title: 'The storage has no room',
    sentence: 'driver {driver} has no room for this volume (RESOURCE_EXHAUSTED)',
    meaning: 'Pool, quota or limit of volumes is exhausted. For delayed classes another node may be chosen by itself.',
    ends: 'Space is freed, or another place is chosen.',
    hints: [
      ['hawser get csistoragecapacities -A', 'what the driver says about its free space'],
      ['hawser get pv', 'volumes that are released and kept use space too'],
    ],
  },
  badParameters: {
    title: 'The driver rejects the request',
    sentence: 'driver {driver} says that the request is wrong (INVALID_ARGUMENT)',
    meaning:
      'Parameters of the class, attributes of the volume, access mode, filesystem type: something the driver does not take. A retry cannot help, so retries are slow.',
    ends: 'Class or volume are corrected.',
    hints: [['hawser get storageclass {class} -o yaml', 'see the parameters it was given']],
  },
  outOfRange: {
    title: 'The driver cannot make that size',
    sentence: 'driver {driver} cannot satisfy the size asked for (OUT_OF_RANGE)',
    meaning: 'Too small, too large, or smaller than the snapshot it comes from.',
    ends: 'Another size is asked for.',
    hints: [['hawser describe pvc/{claim}', 'see the size asked for']],
  },
  storageGone: {
    title: 'The driver does not know the volume',
    sentence: 'driver {driver} says that the storage of volume {volume} does not exist (NOT_FOUND)',
    meaning: 'Deleted behind our back, or the handle in the volume object is wrong.',
    ends: 'Nothing, unless the storage comes back.',
    hints: [['hawser get pv {volume} -o yaml', 'see spec.csi.volumeHandle']],
  },
  alreadyExists: {
    title: 'A volume of that name exists with other properties',
    sentence: 'driver {driver} has a volume of that name which does not match the request (ALREADY_EXISTS)',
    meaning:
      'An earlier request of the same name was carried out with other parameters, or a volume is published there in another way.',
    ends: 'Nothing; the other volume must go, or the claim be made anew.',
    hints: [['hawser driver rpc SOCKET Controller/ListVolumes', 'see what the driver has']],
  },
  driverForbids: {
    title: 'The driver is not allowed to',
    sentence: 'driver {driver} lacks rights or credentials (PERMISSION_DENIED or UNAUTHENTICATED)',
    meaning: 'The storage refused the credentials that the driver has, or that the secret of the class gave it.',
    ends: 'The credentials are corrected.',
    hints: [
      ['hawser get storageclass {class} -o yaml', 'see which secrets it names'],
      ['hawser get secrets -A', 'see whether they exist'],
    ],
  },
  preconditionFailed: {
    title: 'The driver says: not in this state',
    sentence: 'driver {driver} refuses while the volume is in its present state (FAILED_PRECONDITION)',
    meaning:
      'Still published on another node, still in use, snapshots depend on it: the driver names what must change first.',
    ends: 'The state changes; it is tried again by itself.',
    hints: [['hawser get volumeattachment', 'where it is attached']],
  },
  notSupported: {
    title: 'The driver cannot do this',
    sentence: 'driver {driver} does not support this operation (UNIMPLEMENTED)',
    meaning: 'Raw block, expansion, snapshots, cloning and more are optional for drivers.',
    ends: 'Nothing; use another driver or do without.',
    hints: [['hawser driver check SOCKET', 'see its capabilities']],
  },
  driverError: {
    title: 'The driver failed',
    sentence: 'driver {driver} reports an internal error; its words are shown',
    meaning: 'INTERNAL, UNKNOWN or DATA_LOSS: something inside the driver or its storage went wrong.',
    ends: 'A later try succeeds.',
    hints: [['hawser events', 'all answers so far']],
  },
  answerRefused: {
    title: 'The answer of the driver cannot be used',
    sentence: 'driver {driver} made a volume that does not match the claim; it was deleted again',
    meaning: 'Too small, unreachable for the chosen node, or without the content asked for.',
    ends: 'A later answer matches.',
    hints: [['hawser events --for pvc/{claim}', 'what was wrong with it']],
  },
  sourceNotReady: {
    title: 'The source of the new volume is not ready',
    sentence: 'claim {claim} is to be filled from a snapshot or another claim that is not ready',
    meaning:
      'The snapshot does not exist or is not ready to use, the source claim is not bound, or either is being deleted.',
    ends: 'The source becomes ready.',
    hints: [
      ['hawser get volumesnapshots', 'see READYTOUSE'],
      ['hawser get pvc', 'see whether the source claim is bound'],
    ],
  },
  sourceUnusable: {
    title: 'The source of the new volume cannot be used',
    sentence: 'claim {claim} cannot be filled from its source: another driver, class, mode or namespace',
    meaning: 'Snapshots and clones stay within one driver and one volume mode.',
    ends: 'Nothing; the claim must name another source.',
    hints: [['hawser describe pvc/{claim}', 'see dataSource']],
  },
  selectorUnsupported: {
    title: 'A claim with a selector cannot be made to order',
    sentence: 'claim {claim} has a selector; drivers cannot make volumes for it',
    meaning: 'Selectors choose among existing volumes by label.',
    ends: 'A volume with those labels appears.',
    hints: [['hawser get pv -o yaml', 'see which labels there are']],
  },
  topologyMissing: {
    title: 'No place satisfies the topology',
    sentence: 'driver {driver} needs to know where to make the volume, and no node that it runs on fits class {class}',
    meaning:
      'allowedTopologies of the class and the topology keys that the driver announced per node have nothing in common.',
    ends: 'The driver registers on a fitting node, or the class is changed.',
    hints: [
      ['hawser get csinode -o yaml', 'see topologyKeys per driver'],
      ['hawser get storageclass {class} -o yaml', 'see allowedTopologies'],
    ],
  },
} as const satisfies CauseTable
