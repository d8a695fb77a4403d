# frozen_string_literal: true

module Heddle
  # The table of all events.
  module Events
    # The texts, by level and name. See {Event} for the syntax.
    TEXTS = {
      error: {
        certificate_expired: "the certificate {certificate} expired at {expires}",
        certificates_not_reloaded: "keeping the old certificates: {reason}",
        control_socket_failed: "the control sockets are closed, because their loop has failed: {error}< ({place})>",
        dns_query_failed: "the block of a Heddle::Net::DNS::Server failed for the query {question}:\n{error}",
        fiber_failed: "{fiber} terminated with exception:\n{error}",
        handoff_version_unknown: "closing {connection}: it was handed off by a worker with another version of Heddle",
        hook_failed: "the hook {hook} failed: {error}< ({place})>",
        live_page_failed: "a page of Heddle::Live has failed: {error}",
        load_failed: "could not load the application again: {reason}; next attempt {delay:delay}",
        mold_ended: "the mold (the process that forks the workers, pid {pid}) has ended: {reason}; loading the " \
                    "application again {delay:delay}",
        mold_failed: "the mold (the process that forks the workers) failed: {error}",
        pool_close_failed: "{pool} could not close {resource}: {error}",
        protections_tripped: "{reason}: new workers start without protections until `heddle protect on` or a restart " \
                             "(docs/stalls.md#crashes-switch-them-off)",
        pubsub_unreachable: "pub/sub can't read from {backend}: {reason}; retrying",
        ractor_died: "{ractor} died, and its running requests are lost: {reason}; starting another Ractor",
        reload_failed: "reload failed: {reason}; keeping the current workers",
        request_failed: "error in {method} {target}< [{request_id}]>: {class}: {error}",
        response_violation: "error in {method} {target}< [{request_id}]>: {violation}",
        restart_failed: "restart failed: {reason}; keeping this master",
        solid_queue_ended: "Solid Queue (pid {pid}) has ended; stopping the server",
        solid_queue_failed: "Solid Queue failed: {error}",
        stop_timed_out: "killing the server, because it has not ended within {timeout:seconds} of the signal to stop",
        task_failed: "{task} failed, and no fiber waits for it:\n{error}",
        thread_failed: "{thread} ended with {error}< ({place})>. Its abort_on_exception is ignored, because it would " \
                       "raise the error in a request",
        websocket_failed: "closing a WebSocket because {callback} failed: {error}",
        websocket_not_moved: "closing a WebSocket that can't be moved to another worker: {callback} {reason}",
        worker_boot_failed: "{role} {worker}< (pid {pid})> has ended before it could serve: {reason}; " \
                            "starting another {delay:delay}",
        worker_failed: "worker {worker} failed: {error}",
        worker_replacement_failed: "{role} {worker}< (pid {pid})> has ended before it could serve: {reason}; keeping " \
                                   "the worker that it would have replaced"
      },
      warn: {
        action_cable_not_closed: "Action Cable failed to close its connections: {error}",
        address_limited: "busy: {connections:connection was|connections were} closed, because the client's address " \
                         "already had as many connections as one address may have (a quarter of max_connections, or " \
                         "16 if that is more). If the client is a proxy, add its address to trusted_proxies",
        blocking_call: "{function} blocked the event loop for {duration:ms}, because it was not offloaded: " \
                       "{reason}<; {advice}>",
        callback_switch: "{caller} called {library}, which called back the Ruby code at {place}, and this code let " \
                         "other fibers run. If one of those fibers also calls {library}, the two calls mix up the " \
                         "state that {library} keeps per thread<; {advice}>",
        certificate_expiring: "the certificate {certificate} expires at {expires}",
        certificate_self_signed: "no certificate is configured: development uses a self-signed one, and " \
                                 "browsers warn about it",
        connection_shared: "Active Record's isolation level is :thread, so all tasks of an event loop share one " \
                           "database connection, and their queries can mix. Set " \
                           "config.active_support.isolation_level = :fiber in config/application.rb (logged once)",
        connections_exhausted: "busy: {limit:connection is|connections are} open, which is the limit " \
                               "(max_connections; by default what memory and the descriptor limit allow). New " \
                               "connections wait in the listen queue until an open one ends, or the server closes one",
        control_socket_missing: "no control socket: {reason}",
        database_connections_exceeded: "{budget}. This is more than 80 % of the {limit} connections that the " \
                                       "database server allows, and each further machine opens as many. Make the " \
                                       "pool smaller, or use PgBouncer (docs/databases.md)",
        database_connections_unknown: "the database connections can't be counted: {error}",
        exception_dropped: "{place} called Thread#raise with {error} on a thread that serves requests. Heddle " \
                           "dropped the exception: all requests of the loop share that thread, and Heddle can't know " \
                           "for which request it was meant. To end a request, use Heddle.timeout or Task#cancel",
        garbage_collection_off: "full garbage collections are off (GC.config): memory grows until the application " \
                                "runs a full collection",
        forwarding_removed: "removed the headers Forwarded and X-Forwarded-* of a request from {address}, because " \
                            "this address is not in trusted_proxies. If your proxy has this address, add its network " \
                            "to trusted_proxies. Without these headers, the application sees http instead of https, " \
                            "and the proxy's address instead of the client's (logged once)",
        gem_not_adapted: "{reason}",
        handoff_failed: "closing idle connections, because they can't be handed off to other workers: {reason}",
        handoffs_not_watched: "worker {worker} polls for connections that other workers hand off, because it can't " \
                              "be notified of them: {reason}",
        hijack_over_http2: "the application called rack.hijack for {method} {target} over HTTP/2, where a request " \
                           "has no connection of its own. Set http2 to off, so that clients use HTTP/1.1 (logged once)",
        late_exception_dropped: "dropped {error}: it was raised outside of any request, probably by another thread " \
                                "for a request that had already ended",
        log_lines_lost: "lost {lines:line} of the log: {reason}",
        malformed_message: "ignoring a malformed message from {process}: {reason}",
        master_lost: "worker {worker} has lost the connection to the master ({reason}); it stops when its running " \
                     "requests are answered",
        memory_budget_exceeded: "replacing {role} {worker}< (pid {pid})>: it uses {memory:MiB} of memory, and all " \
                                "processes together use {used:MiB} of {limit:MiB}",
        memory_short: "all processes together use {used:MiB} of {limit:MiB} of memory. Replacing a worker would not " \
                      "help: each worker is within worker_memory_limit or, if that is 0, at most a quarter larger " \
                      "than the mold (the process that forks the workers). Reduce the option workers, or use a " \
                      "larger container",
        message_failed: "worker {worker} failed to handle a message from the master: {error}< ({place})>",
        mold_not_forked: "worker {worker} can't fork a new mold (the process that would fork new workers): {reason}",
        offload_threads_exhausted: "all {limit} offload threads are busy: further native calls are queued " \
                                   "(Heddle::Offload.thread_limit, docs/offload.md#how-many-threads)",
        options_need_restart: "a reload can't change {options}: to apply the change, run heddle restart or send USR2",
        pool_connection_held: "{pool}: a fiber has held a connection for {duration} s while it waits for something " \
                              "else. It checked the connection out at {checked_out}, and waits at {place}. {advice}",
        pool_nested_checkout: "{pool}: a task waits for a connection at {place}, but this task, or a task that waits " \
                              "for it, already holds one, checked out at {checked_out}. If such tasks hold all " \
                              "connections of the pool, none can be returned, and the wait raises an error",
        proxies_trusted_by_default: "clients in private networks that connect to {address} can forge their address " \
                                    "and scheme with X-Forwarded-* headers, because trusted_proxies includes private " \
                                    "networks by default. Set trusted_proxies to the addresses of your proxies. To " \
                                    "keep the default without this warning, set it to \"loopback\", \"private\", " \
                                    "\"unix\"",
        pubsub_foreign_entry: "pub/sub skips {entry} in {backend}, because another program has written it. Further " \
                              "entries of other programs are skipped without a message. Give each program its own " \
                              "name in the option pubsub (`?name=` in the URL)",
        pubsub_waiting: "pub/sub has no answer from {backend} yet; retrying",
        query_failed: "worker {worker} failed to answer the master's query {question}: {error}",
        queue_rejected: "busy: {requests:request|requests} got 503. Since the start, {full} got 503 because the " \
                        "queue was full (queue_limit), and {late} because they waited for too long (queue_timeout)",
        refork_failed: "refork failed: {reason}; keeping the current workers",
        request_timed_out: "{method} {path} exceeded request_timeout ({timeout:seconds})<, at {place}>",
        requests_cut_off: "stopping< after {timeout:seconds}> with {requests:request} unanswered<, and " \
                          "{transfers:upload or download|uploads or downloads} cut off><: {running}>",
        requests_queued: "busy: {waiting:request waits|requests wait}, because at most {limit:request runs|requests " \
                         "run} at once ({reason})",
        requests_refused: "rejecting requests with 503: {reason}",
        reserve_refused: "not starting a reserve worker, because memory is short",
        selector_fallback: "using {selector}, because {best} can't run here: {reason}",
        signal_ignored: "ignoring {signal}: a server with one process can't {command}. Stop it and start it again, " \
                        "or start it with --workers 2",
        slow_readers_cut: "busy: {clients:client was|clients were} disconnected: they read responses too slowly, or " \
                          "were the slowest when the pending output of an event loop exceeded {responses:MiB}",
        solid_queue_not_started: "Solid Queue can't be started now: {reason}",
        stall: "stall of {duration:ms}: {description}<, in {request}><, at {place}>< ({unreported:more stall} of " \
               "{endpoint} since the previous line about it)><; {advice}>",
        stop_now_requested: "stopping at once ({source})",
        temporary_folder_missing: "no folder for temporary files is writable: request bodies that don't fit into " \
                                  "memory get 503. Set TMPDIR to a writable folder",
        thread_kill_refused: "{place} tried to kill a thread that serves requests. Heddle stops this process when " \
                             "its running requests are answered; a master then starts another worker",
        threads_not_forked: "workers don't have {threads:thread} that the application started while it was loaded, " \
                            "because a fork copies no threads: {places}. Start them in a worker_boot hook " \
                            "(docs/threads.md)",
        trace_not_written: "can't write the trace {file}: {error}",
        tls_handshake_failed: "a TLS handshake failed because of an error in this server: {error}",
        transaction_not_shared: "a task uses a database connection of its own at {place}, while its parent, or " \
                                "another ancestor, is in a transaction on another connection. The task does not see " \
                                "the ancestor's uncommitted changes, and a rollback does not undo the task's changes",
        underscore_removed: "removed a header from the request for {target}: its name contains an underscore, and " \
                            "clients can use such names to forge other headers. If a client needs such headers, set " \
                            "underscore_headers true (logged once)",
        worker_ended: "{role} {worker}< (pid {pid})> has ended: {reason}<, with {requests:request} unanswered>" \
                      "<; starting another {delay:delay}>",
        worker_killed: "killing {role} {worker}< (pid {pid})>: {reason}<, with {requests:request} unanswered>",
        worker_memory_exceeded: "replacing {role} {worker}< (pid {pid})>: it uses {memory:MiB} of memory " \
                                "(its limit is worker_memory_limit, {limit:MiB}, minus up to a tenth)",
        worker_not_started: "worker {worker} can't be started now: {reason}",
        worker_requests: "{role} {worker}< (pid {pid})> was serving {running}",
        workers_limited: "running {workers:worker} instead of {wanted}: to run more, restart the server (heddle " \
                         "restart or USR2)"
      },
      info: {
        certificates_reloaded: "reloaded the certificates: {certificates}",
        database_connections: "{budget}<; each further machine opens as many. The database server's limit is {limit}>",
        protections_switched: "protections switched {state} (heddle protect {state})",
        pubsub_recovered: "pub/sub can read from {backend} again",
        reforked: "reforked: {workers:worker serves|workers serve} and share the memory of a warm worker",
        reload_requested: "replacing the workers one by one ({source})",
        reloaded: "reloaded: {workers:worker serves|workers serve} the new code",
        request_rejected: "{status} rejected request< from {remote}>: {reason}",
        reserve_kept: "keeping a reserve worker ready, because one started on demand would be too late: {reason}",
        restart_started: "starting a new master",
        restarted: "the new master (pid {pid}) serves; the old master ends",
        server_started: "Heddle {version} (Ruby {ruby}, {selector}) serves {application} on {urls}\nMode {mode}: " \
                        "{processes}.\n<{ruby_notice}.\n><Adapted: {adapted}.\n>Protection: {protection}.",
        stop_requested: "stopping ({source}) when running requests are answered<; accepting connections for another " \
                        "{drain_delay:seconds} (drain_delay)><; {hint}>",
        trace_written: "{reason} of {duration:s}<, {request}>: {cause}<, at {place}><, in {culprit}>; the " \
                       "trace is in {file}",
        websocket: "{code} WebSocket {target} received {received:message} ({received_bytes:bytes}), sent " \
                   "{sent:message} ({sent_bytes:bytes}) in {duration:s}< for {remote}>< [{request_id}]>",
        worker_lifetime_ended: "replacing {role} {worker}< (pid {pid})>: it has served {requests:request} in " \
                               "{age:s}< (worker_max_requests {max_requests} minus up to a tenth)>" \
                               "< (worker_max_age {max_age:seconds} minus up to a tenth)>",
        workers_resized: "running {workers:worker} until the next reload"
      }
    }.freeze

    # Fields that the texts leave out.
    BUDGET = %i[database pool_size workers reserves].freeze
    EXTRA = {
      request_failed: %i[backtrace cause], worker_failed: %i[backtrace], stall: %i[cause library], websocket: %i[proxy],
      database_connections: BUDGET, database_connections_exceeded: BUDGET
    }.freeze
    private_constant :TEXTS, :BUDGET, :EXTRA

    TABLE = Ractor.make_shareable(TEXTS.flat_map do |level, texts|
      texts.map { |name, text| [name, Event.new(name:, level:, template: text, extra: EXTRA.fetch(name, []))] }
    end.to_h)
  end
end
