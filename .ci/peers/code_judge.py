"""The design of code-judge, rStar2-Agent's tool service, reproduced to be measured beside restar's sandbox.

An HTTP server puts every submission on a Redis list; workers, one process a core, take the oldest, write it to a file between
a prologue and an epilogue, run a fresh python3 on it without isolation, and push the result on a list of its own, for which
the server waits. Bodies and results are those of code-judge; what it does about errors of its own is left out.

Usage: code_judge.py work REDIS_PORT COUNT | code_judge.py serve REDIS_PORT HTTP_PORT
"""
import json, multiprocessing, subprocess, sys, tempfile, time, uuid

SECONDS = 4          # MAX_EXECUTION_TIME of rStar2
MEMORY = (256 << 20) + (128 << 20)  # MAX_MEMORY, and what it adds for Python
OUTPUT = 1000        # MAX_STDOUT_ERROR_LENGTH
WAIT = SECONDS + 15  # longest wait for a result

PROLOGUE = f'''import signal, resource, os, time
os.environ['OPENBLAS_NUM_THREADS'] = '1'
def _late(*_):
    print('Suicide from timeout.', flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
signal.signal(signal.SIGALRM, _late)
signal.alarm({SECONDS})
resource.setrlimit(resource.RLIMIT_CPU, ({SECONDS}, resource.getrlimit(resource.RLIMIT_CPU)[1]))
resource.setrlimit(resource.RLIMIT_AS, ({MEMORY}, resource.getrlimit(resource.RLIMIT_AS)[1]))
_began = time.perf_counter()
'''
EPILOGUE = '''
_ended = time.perf_counter()
print("@@E")
print(f"@@D{_ended - _began}", flush=True)
'''


def run(job):
    with tempfile.TemporaryDirectory() as folder:
        with open(folder + '/source.py', 'w') as file:
            file.write(PROLOGUE + job['solution'] + EPILOGUE)
        began = time.perf_counter()
        done = subprocess.run(['/usr/bin/python3', file.name], capture_output=True, cwd=folder, input=(job.get('input') or '').encode(), start_new_session=True)
        cost = time.perf_counter() - began
    stdout, _, end = done.stdout.decode().partition('@@E\n')
    if end.startswith('@@D'):
        cost = float(end[3:])
    ok = done.returncode == 0
    late = not ok and cost >= SECONDS
    return {'sub_id': job['sub_id'], 'success': ok, 'run_success': ok, 'cost': cost, 'stdout': stdout[:OUTPUT],
            'stderr': done.stderr.decode()[:OUTPUT], 'reason': 'worker_timeout' if late else ''}


def work(port):
    import redis
    queue = redis.Redis(port=port)
    while True:
        item = queue.blpop('work', timeout=30)
        if item:
            job = json.loads(item[1])
            queue.rpush('result:' + job['work_id'], json.dumps(run(job)))
            queue.expire('result:' + job['work_id'], 60)


def serve(port, http):
    import fastapi, redis.asyncio, uvicorn
    from typing import List, Optional
    from pydantic import BaseModel

    class Submission(BaseModel):
        sub_id: Optional[str] = None
        type: str
        solution: str
        input: Optional[str] = None

    class Batch(BaseModel):
        sub_id: Optional[str] = None
        type: str = 'batch'
        submissions: List[Submission]

    app, queue = fastapi.FastAPI(), redis.asyncio.Redis(port=port)

    async def submit(batch):
        keys, jobs = [], []
        for s in batch:
            work_id = str(uuid.uuid4())
            keys.append('result:' + work_id)
            jobs.append(json.dumps({'work_id': work_id, 'sub_id': s.sub_id or work_id, 'solution': s.solution, 'input': s.input}))
        await queue.rpush('work', *jobs)
        return keys

    async def collect(keys, longest):
        results, end = {}, time.time() + longest
        while len(results) < len(keys) and time.time() < end:
            item = await queue.blpop([k for k in keys if k not in results], timeout=WAIT)
            if item:
                results[item[0].decode()] = json.loads(item[1])
        await queue.delete(*keys)
        lost = {'success': False, 'run_success': False, 'cost': longest, 'stdout': None, 'stderr': None, 'reason': 'queue_timeout'}
        return [results.get(k) or {'sub_id': k, **lost} for k in keys]

    @app.post('/run')
    async def one(s: Submission):
        return (await collect(await submit([s]), WAIT))[0]

    @app.post('/run/long-batch')
    async def many(b: Batch):
        return {'sub_id': b.sub_id or str(uuid.uuid4()), 'results': await collect(await submit(b.submissions), 3600)}

    @app.get('/ping')
    async def ping():
        return 'pong'

    uvicorn.run(app, host='127.0.0.1', port=http, log_level='warning')


if __name__ == '__main__':
    if sys.argv[1] == 'work':
        workers = [multiprocessing.Process(target=work, args=(int(sys.argv[2]),)) for _ in range(int(sys.argv[3]))]
        for w in workers:
            w.start()
        for w in workers:
            w.join()
    else:
        serve(int(sys.argv[2]), int(sys.argv[3]))
