# frozen_string_literal: true

module Heddle
  module Databases
    module Sequel
      # Prepended to the classes of pools. A closed connection is replaced instead of checked out. It may have been
      # closed because its query was abandoned, or by the server.
      module ConnectionPool
        private

        # If this fiber is interrupted or killed before it has a connection, a waiting fiber is woken in its place.
        def acquire(owner, *server)
          interrupted = true
          connection = heddle_acquire_fit(owner, server) { super }
          interrupted = false
          connection
        rescue Exception => e
          interrupted = heddle_interruption?(e)
          raise
        ensure
          heddle_refill(*server) if interrupted
        end

        def heddle_acquire_fit(owner, server)
          while (connection = yield)
            begin
              taken = nil
              taken = heddle_taken(connection) if Sequel.fit?(connection)
              return taken if taken
            ensure
              heddle_discard(connection, owner, server) unless taken # also after an interruption of these calls
            end
          end
        end

        # Decrements the pool's number of connections if Fiber#kill ends the fiber while it makes a connection. Sequel
        # does so only in a `rescue`, which Fiber#kill does not run.
        def preallocated_make_new(*server)
          ended = false
          connection = super
          ended = true
          connection
        rescue Exception
          ended = true
          raise
        ensure
          heddle_free_place(*server) unless ended
        end

        def heddle_free_place(server = 0)
          sync { (@sizes || @size)[server] -= 1 }
        end

        # A pool of the type `timed_queue` calls this method to wait.
        def wait_until_available(queue = nil, server = nil) = heddle_wait(server) { super(*[queue, server].compact) }

        # A pool of the type `threaded` calls this method to wait, while the fiber has the pool's mutex.
        def acquire_available(owner, *server, timeout)
          Thread.current[:heddle_waits] = true # local to the fiber
          heddle_wait(server.first) { Heddle.without_preemption { super } }
        ensure
          Thread.current[:heddle_waits] = nil
        end

        def heddle_wait(server, &wait)
          scheduler = Fiber.current_scheduler
          return yield unless scheduler.is_a?(Scheduler)

          Checkouts.new(self).wait(scheduler, server, &wait)
        end

        def heddle_taken(connection)
          scheduler = Fiber.current_scheduler
          Checkouts.new(self).taken(connection, scheduler) if scheduler.is_a?(Scheduler)
          connection
        end

        def heddle_interruption?(error)
          !error.is_a?(::Sequel::Error) || error.wrapped_exception.is_a?(::Timeout::Error)
        end

        def heddle_discard(connection, owner, server)
          allocated = server.empty? ? @allocated : @allocated[server.first]
          sync { allocated.delete(owner) }
          return disconnect_acquired_connection(connection, owner, *server) unless Sequel.settling?(connection)

          heddle_run_apart do
            Sequel.settle(connection)
          ensure
            disconnect_acquired_connection(connection, owner, *server)
            heddle_refill(*server)
          end
        end

        # Runs the work in another fiber; in a thread if there is no loop, or no memory for a fiber's stack.
        def heddle_run_apart(&work)
          Fiber.current_scheduler ? Fiber.schedule(&work) : Thread.new(&work)
        rescue FiberError
          Thread.new(&work)
        end

        # Wakes a waiting fiber, because this one may have been woken for a connection that it did not take. A pool of
        # the type `threaded` uses a condition variable: the woken fiber takes a connection, or connects itself.
        def heddle_refill(*server)
          unless respond_to?(:fill_queue, true)
            waiter = @waiter || @waiters[server.first]
            return sync { waiter.signal }
          end

          queue = @queue || @queues[server.first]
          connection = queue.pop(timeout: 0)
          connection ? queue.push(connection) : fill_queue(*server, 1)
        end

        def disconnect_connection(connection)
          Checkouts.forget(connection)
          super
        end

        # Sequel wraps every exception during connecting in its own error. An interruption is raised unwrapped, because
        # it is not an error.
        def make_new(server)
          super
        rescue ::Sequel::DatabaseConnectionError => e
          interruption = e.wrapped_exception
          raise e if interruption.nil? || interruption.is_a?(StandardError)

          raise interruption
        end
      end

      # Prepended to the classes of pools.
      module PoolMutex
        # The fiber must not switch while it waits for the mutex, which another thread may have. If the fiber were
        # interrupted or killed there while it returns or drops a connection, the pool would still list the connection
        # as checked out by this fiber. The fiber's next check-out would get this connection, even if it is closed. The
        # fiber must not be preempted while it has the mutex, either, because another fiber of the same thread could
        # wait for the mutex. A fiber that waits for a connection may switch, because it has no connection yet.
        def sync(&) = Thread.current[:heddle_waits] ? super : Fiber.blocking { super(&) }
      end
    end
  end
end
