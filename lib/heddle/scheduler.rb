# frozen_string_literal: true

require "heddle/native"
require "heddle/native_libraries"
require "heddle/selector"
require "heddle/scheduler/thread_pool"
require "heddle/scheduler/thread_pool/job"
require "heddle/scheduler/patches"
require "heddle/scheduler/signal_guard"
require "heddle/error_text"
require "heddle/events"
require "heddle/scheduler/blocking_operations" if RUBY_VERSION >= "3.4"
require "heddle/offload/starting" if RUBY_VERSION >= "4.0"

module Heddle
  # Raised in a cancelled fiber. It is an Exception, not a StandardError, so that a +rescue+ without a class does not
  # catch it.
  class Cancelled < Exception
    def initialize(message = "cancelled")
      super
    end
  end

  # For +rescue+ and +when+: matches every exception of an application, including exceptions that are not
  # StandardErrors, such as failures of RSpec's doubles. Does not match exceptions that must end more than the request,
  # message or page in which they are raised.
  #
  # @api private
  module ApplicationFailure
    PASSED_ON = [Cancelled, SystemExit, SignalException].freeze
    private_constant :PASSED_ON

    # @param raised [Exception]
    # @return [Boolean]
    def self.===(raised)
      case raised
      when *PASSED_ON then false
      else true
      end
    end
  end

  # Raised by the event loop if every fiber waits for another one, so that no fiber can ever continue.
  class DeadlockError < OwnError; end

  # A fiber scheduler: when a fiber makes a blocking call of Ruby, only the fiber waits, and the thread runs other
  # fibers.
  #
  # A program can use it without Heddle's own methods (see Fiber::Scheduler in Ruby's documentation):
  #
  #   Fiber.set_scheduler(Heddle::Scheduler.new)
  #   Fiber.schedule { sleep 1 }
  #   Fiber.schedule { Net::HTTP.get(URI("http://localhost:9292/")) }
  #   # the end of the thread waits for both
  #
  # A scheduler belongs to one thread; other threads may call only #unblock, #fiber_interrupt and #unpark. The hooks are
  # in C (ext/heddle/scheduler); this file decides policy.
  #
  # @api private except what sig/ declares
  class Scheduler
    # Number of frames that {#sleeps_forever?} examines: the frames of the hook, of some wrappers, and of Kernel#sleep.
    HOOK_FRAMES = 12
    private_constant :HOOK_FRAMES

    # @param resolver [#addresses]
    attr_writer :resolver

    # A callable for deadlocks: it gets this scheduler, and returns the exception to raise.
    attr_accessor :deadlock_report

    # @param selector [Symbol, nil] +:io_uring+, +:epoll+, +:kqueue+ or +:select+; nil: {Selector.best}
    # @raise [ArgumentError] if the selector does not work on this machine
    def initialize(selector: nil)
      open_loop((selector ? Selector.find(selector) : Selector.best).to_s)
      @given_up = false
      Patches.apply
      Scheduler.switch_off_fast_fallback
    end

    # Runs the loop on the calling fiber until all scheduled fibers have ended.
    #
    # An exception raised into the loop (Interrupt, Thread#raise, +exit+ in a fiber) cancels every fiber, and is raised
    # here after all have ended. A second exception is raised at once.
    # @return [nil]
    # @raise [Exception] the first exception that a fiber of <tt>Fiber.schedule</tt> did not rescue, after all fibers
    #   have ended
    # @raise [ThreadError] if the loop is already running, or belongs to another thread
    def run
      run_fibers
      raise_failure
    end

    # Called by Ruby at the end of the thread and by <tt>Fiber.set_scheduler(nil)</tt>: runs the remaining fibers, then
    # releases all resources. Idempotent.
    #
    # If the program forks in a fiber that it resumes itself, Ruby calls this method in the child on that fiber after
    # the fiber has ended. Then no fiber can run the loop, so the remaining fibers do not run.
    def scheduler_close
      return if closed?
      return release unless Fiber.current.alive?

      claim
      begin
        return if @given_up

        # If the program exits, the loop cancels its fibers and does not wait for their work.
        cancel_all if $!.is_a?(SystemExit) || $!.is_a?(SignalException) # rubocop:disable Style/SpecialGlobalVars
        run_fibers
      ensure
        @thread_pool&.close unless @given_up
        release
      end
    end

    # Closes the scheduler. Raises the same exceptions as {#run}.
    def close
      scheduler_close
      raise_failure
    end

    # @return [#addresses, nil] an object that resolves names without a thread, with the method +addresses(name) ->
    #   Array<String>+; nil: Ruby's own resolver is called on another thread
    def resolver
      @resolver ||= (load_resolver if respond_to?(:load_resolver, true)) # see heddle/net/scheduler_resolver
    end

    if RUBY_VERSION >= "3.4"
      # Ruby's own blocking operations: see {BlockingOperations}.
      def blocking_operation_wait(work) = BlockingOperations.run(self, work)
    end

    # Implements the hook +address_resolve(host) -> Array<String>+, which returns a name's addresses, or none if the
    # name does not exist.
    #
    # Ruby passes each address that the hook returns to inet_pton, which accepts neither a +%zone+ nor +127.1+. If the
    # hook is missing, Ruby calls libc, which parses numeric addresses without a lookup. So for numeric addresses this
    # method reports that the hook is missing.
    #
    # respond_to_missing? is not defined: with it, Ruby would treat a missing method as an error of the hook.
    def method_missing(name, *arguments) # rubocop:disable Style/MissingRespondToMissing
      return with_async(name, *arguments) if defined?(::Async::Task) && ASYNC_CALLS.include?(name)
      return super if name != :address_resolve || NUMERIC_ADDRESS.match?(arguments.first.to_s)

      resolve_name(arguments.first)
    end

    # The threads for work that would otherwise block the event loop.
    # @return [ThreadPool]
    def thread_pool
      @thread_pool = ThreadPool.new unless @thread_pool&.of_this_process?
      @thread_pool
    end

    # @return [String]
    def inspect
      "#<#{self.class} #{selector} fibers=#{fiber_count}#{" closed" if closed?}>"
    end

    class << self
      # With Socket.tcp_fast_fallback (Ruby >= 3.4), TCPSocket.new resolves names without the scheduler, which blocks
      # the loop. So the first scheduler switches this setting off, even if the program has switched it on, because that
      # can't be distinguished from the default. The program can switch it on again afterwards.
      def switch_off_fast_fallback
        return if RUBY_VERSION < "3.4" || @fast_fallback_done || Ractor.current != Ractor.main

        require "socket"
        @fast_fallback_done = true
        ::Socket.tcp_fast_fallback = false unless ENV.key?("RUBY_TCP_NO_FAST_FALLBACK")
      end
    end

    private

    # Cancels every fiber except the calling one, which runs the exiting program if this is a forked child.
    def cancel_all
      own = current_fiber
      each_fiber { |fiber, job, _state| cancel_job(fiber, job) unless fiber.equal?(own) }
    end

    # Called from C for a Process.wait that needs a thread, such as a wait for any child, or for a process group.
    def process_wait_in_thread(pid, flags) = thread_pool.run { Process::Status.wait(pid, flags) }

    # The async gem calls one of these methods of the scheduler first. If the program has loaded the gem after the loop
    # was started, this first call loads Heddle's support for the gem.
    ASYNC_CALLS = %i[add_child transfer push with_timeout].freeze
    private_constant :ASYNC_CALLS

    def with_async(name, ...)
      require "heddle/async"
      public_send(name, ...)
    end

    NUMERIC_ADDRESS = /[:%]|\A(?:0x\h+|\d+)(?:\.(?:0x\h+|\d+)){0,3}\z/i
    private_constant :NUMERIC_ADDRESS

    def resolve_name(host)
      return resolver.addresses(host) if resolver

      thread_pool.run { libc_addresses(host) }
    end

    def libc_addresses(host)
      Addrinfo.getaddrinfo(host, nil, nil, :STREAM).map(&:ip_address).uniq
    rescue Socket::ResolutionError => e
      raise unless [Socket::EAI_NONAME, Socket::EAI_NODATA].include?(e.error_code)

      []
    end

    # Runs the loop like {#run}, but does not raise the exceptions of fibers, which were already reported.
    def run_fibers
      claim # outside of the code that stops the fibers, so that a failed claim does not stop them
      SignalGuard.during(self) { run_to_the_end }
    end

    def raise_failure
      failure, @failure = @failure, nil
      raise failure if failure
    end

    def run_to_the_end
      ended = false
      run_ticks
      ended = true
    rescue Exception => e
      ended = true
      stop(e)
      # a killed thread ends silently; Ruby would report the exception that stands for the kill
      e.is_a?(Cancelled) && Thread.current.status == "aborting" ? Thread.exit : raise
    ensure
      stop(nil) unless ended # the thread was killed, without an exception
    end

    # Cancels every fiber, and runs the loop until all have ended. Another exception, such as a second Ctrl-C, ends this
    # wait.
    def stop(reason)
      cancel_computing(nil)
      cancel_all
      run_ticks
    rescue DeadlockError
      raise unless reason # the exception that caused the stop is more informative
    rescue Exception
      @given_up = true
      raise
    end

    def cancel_job(fiber, job)
      job.respond_to?(:cancel) ? job.cancel : interrupt(fiber, Cancelled.new)
    end

    # Called from C in each new fiber, as its outermost frame, so that every frame has a file and a line.
    def run_job(job) = job.call

    # Called from C in a forked child when the fiber in which the program forked ends.
    # @return [Boolean] whether the code after the loop runs in the child
    # @raise the exception that ends the child process
    def child_ends(job) = job.respond_to?(:end_in_child) && job.end_in_child

    # Called from C when a fiber ended with an uncaught exception: reports it, as Ruby does for threads. SystemExit,
    # SignalException and NoMemoryError are not reported here, but raised in the caller that runs the loop.
    def report_failure(fiber, error)
      return if error.is_a?(Cancelled)

      @failure ||= error
      Events.report(:fiber_failed, fiber: fiber.inspect, error: ErrorText.full(error))
    end

    # Called from C if a queued fiber can't be started, because no stack can be allocated.
    def report_unstarted(job, error)
      job.respond_to?(:unstarted) ? job.unstarted(error) : raise(error)
    end

    # Called from C if a queued fiber is killed, or the program ends, before the fiber has started.
    def report_killed(job)
      job.unstarted(Cancelled.new) if job.respond_to?(:unstarted)
    end

    # Called from C when the loop would wait forever. This is not a deadlock if a fiber is in +sleep+ without a time
    # limit.
    def on_deadlock
      each_fiber { |fiber, _job, _state| return nil if sleeps_forever?(fiber) }
      raise deadlock_report ? deadlock_report.call(self) : DeadlockError.new(deadlock_message)
    end

    # Returns whether a fiber is in Kernel#sleep, which its frames show. Mutex#sleep and ConditionVariable#wait call the
    # same hook, but they wait for another fiber. Between the frames of the hook and of Kernel#sleep may be frames of
    # subclasses of this class, and of modules that are prepended to it.
    def sleeps_forever?(fiber)
      # In the fiber that runs the loop, the backtrace begins with frames of the loop, so all frames are needed.
      frames = fiber.equal?(Fiber.current) ? fiber.backtrace_locations : fiber.backtrace_locations(0, HOOK_FRAMES)
      labels = frames&.map { |location| location.label[/[^#.]+\z/] }&.drop_while { |label| label != "kernel_sleep" }
      sleeping = labels&.first(HOOK_FRAMES)&.index("sleep")
      sleeping ? labels[sleeping + 1] != "wait" : false
    end

    def deadlock_message
      waiting = []
      each_fiber { |fiber, _job, state| waiting << "  #{fiber.inspect} #{state}" }
      "deadlock: every fiber waits for another one, and nothing can wake them:\n#{waiting.join("\n")}"
    end
  end
end
