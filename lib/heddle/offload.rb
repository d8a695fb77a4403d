# frozen_string_literal: true

require "heddle/protection"
require "heddle/scheduler"
require "heddle/scheduler/blocking_operations"
require "heddle/offload/libraries"
require "heddle/offload/starting"

module Heddle
  # The protection `:offload`: a native call that releases Ruby's lock blocks only the calling fiber.
  #
  # Without the protection, a native call blocks its thread, and so every fiber of the event loop. With the protection,
  # another thread runs the call while the loop continues. For this, Heddle replaces +rb_nogvl+ and similar functions of
  # Ruby in the import tables of the loaded libraries (Linux; see docs/offload.md). A call is offloaded only in a fiber
  # of one of Heddle's loops, and only if its library is known to be safe, Heddle judges the library safe from its file,
  # or the user allows it.
  module Offload
    # Methods of Ruby in which native calls are not offloaded, because these methods hold a lock that belongs to the
    # thread: if another fiber of the thread loaded the same file meanwhile, Ruby would report a circular require.
    LOADING = %w[require require_relative load autoload].freeze

    # The value of `core` in {status} before the protection is switched on for the first time.
    NOT_TRIED = "not tried yet"

    autoload :ThreadLimit, "heddle/offload/thread_limit"
    autoload :InPlace, "heddle/offload/in_place"

    # The prefix of an allowed library's name if only the library's waits in libc are to be offloaded.
    WAITS = "libc:"

    private_constant :LOADING, :NOT_TRIED, :WAITS

    # Switches the protection on and off, and sets its libraries and threads. Further methods are in C.
    #
    # @api private
    module Switch
      class << self
        # Switches the protection on. {Heddle.enable} calls it.
        #
        # @param allow [Array<String>] prefixes of the file names of further libraries whose calls may run on any
        #   thread. The variable HEDDLE_OFFLOAD_ALLOW adds more, separated by commas. A later call of this method adds
        #   libraries, and removes none. Read docs/offload.md first: it lists what such a library must not do
        # @param deny [Array<String>] further libraries whose calls are not offloaded; the variable HEDDLE_OFFLOAD_DENY
        #   adds more. A library that is both allowed and denied is denied
        # @param libc [Array<String>] further libraries whose waits in libc (poll, select, sleep, connect, recv) are
        #   offloaded although the libraries hold Ruby's lock; docs/offload.md lists the requirements
        # @param threads [Integer, nil] the maximum number of offload threads; further calls are queued. nil keeps the
        #   current maximum, which is {ThreadLimit.default} at first
        # @raise [ArgumentError] if a name in `libc` is empty, if the waits of a library in it must not be offloaded,
        #   or if the number of threads is invalid
        def enable(allow: [], deny: [], libc: [], threads: nil)
          name_libraries(allow:, deny:, libc:)
          self.thread_limit = threads if threads
          limit_threads(@thread_limit || @share || ThreadLimit.default)
          know_good_libraries(KNOWN_GOOD)
          quick_libraries(QUICK)
          native_methods(Scheduler::BlockingOperations::INLINE.keys, LOADING)
          apply_names
          check_descriptors unless @checked
          switch(true)
        end

        # @see Offload.thread_limit=
        def thread_limit=(threads)
          Arguments.refuse("the number of offload threads", threads, "from 1 to 100000") unless
            threads.is_a?(Integer) && threads.between?(1, 100_000)

          limit_threads(@thread_limit = threads)
        end

        # Sets the default limit of threads. A limit that the program has set has priority.
        # @param workers [Integer] the number of processes that share the container's limit of tasks (pids.max)
        def share_threads(workers)
          @share = ThreadLimit.default(workers:)
          limit_threads(@thread_limit || @share)
        end

        # Adds libraries. If the protection is off, they take effect when it is switched on.
        # @param (see enable)
        # @raise (see enable)
        def name_libraries(allow: [], deny: [], libc: [])
          allow, deny, libc = [allow, deny, libc].map { |names| Array(names).map(&:to_s) }
          waits, allow = (environment("HEDDLE_OFFLOAD_ALLOW") + allow).partition { |name| name.start_with?(WAITS) }
          libc += waits.map { |name| name.delete_prefix(WAITS) }
          refuse(libc)
          @allow |= allow
          @deny |= environment("HEDDLE_OFFLOAD_DENY") + deny
          @libc |= libc
          apply_names if enabled?
        end

        # Switches the protection off. Later calls run as in plain Ruby; calls that are running on offload threads
        # continue there.
        def disable = switch(false)

        # @see Offload.status
        def status
          { on: enabled?, core: core || true, extensions: library_count, libc: Offload.libc_libraries.size,
            missing: missing_functions.map { |function, use, reason| { function:, use:, reason: } }, reason:,
            **Offload.threads }
        end

        # @return [Array<InPlace>] the native functions that have blocked an event loop, because they were not
        #   offloaded. Each function is returned only once
        def take_in_place = take_blocking.map { |function, seconds| InPlace.new(function:, seconds:) }

        # Runs the block without offloading: native calls in it run on the loop's thread.
        def inline
          scheduler = Fiber.current_scheduler
          return yield unless scheduler.is_a?(Scheduler)

          count_inline(scheduler, 1)
          begin
            yield
          ensure
            count_inline(scheduler, -1)
          end
        end

        private

        def apply_names
          allow_libraries(@allow)
          deny_libraries(@deny)
          hook_libc(@libc)
          intercept
        end

        # Called from C the first time that a call is queued because all offload threads are busy. The caller's fiber
        # must not wait here, so another fiber reports this. Not called again, nor in a child that is forked later.
        def threads_used_up(scheduler)
          limit = Offload.threads[:limit]
          scheduler.spawn(-> { Events.report(:offload_threads_exhausted, limit:) })
        end

        # Called from C once. From this call, which is not offloaded, C learns where Fiddle stores the address of the
        # function that is to be called.
        def call_probe = Fiddle::Function.new(probe, [], Fiddle::TYPE_VOID).call

        # Checks how this version of Ruby passes descriptors to its I/O functions. A pipe suffices for this, so no file
        # is needed.
        def check_descriptors
          @checked = true
          IO.pipe do |pipe, _|
            file = File.for_fd(pipe.fileno, autoclose: false)
            check_io_calls(file, file)
          end
          learn_open_calls
        end

        def reason
          return if core.nil? || core == NOT_TRIED
          return "Ruby's own calls are not offloaded: #{core}" unless library_count.zero?

          operations = " and operations that Ruby passes to the fiber scheduler" if RUBY_VERSION >= "3.4"
          "only blocks of Heddle.offload { }#{operations} are offloaded: #{core}"
        end

        def refuse(libraries)
          raise ArgumentError, "offload: the name of a library is empty" if libraries.any?(&:empty?)

          bad = libraries.find { |name| NEVER_LIBC.any? { |never| name.start_with?(never) } } or return
          raise ArgumentError, "the waits of #{bad} can't be offloaded, because the library holds locks while it waits"
        end

        def environment(name) = ENV.fetch(name, "").split(",").map(&:strip).reject(&:empty?)
      end

      @allow = []
      @deny = DENIED
      @libc = LIBC
      Protection.register(:offload, self)
    end

    class << self
      # Measurements of each native function that fibers have called:
      #
      # - +:library+, +:function+ (its symbol or offset in the file), +:method+ (the first Ruby method that called it)
      # - +:calls+ (the number of calls), +:offloaded+ (the number of offloaded calls)
      # - +:wall+ (a moving average of the seconds of a call, which falls more slowly than it rises), +:cpu+ (the share
      #   of these seconds in which the call used a CPU)
      # - +:class+ (+:waits+, +:computes+, +:quick+, +:in_place+ or +:denied+), +:reason+ (why the function is not
      #   offloaded, or nil)
      # - +:trust+ (the class of its library, see {libraries})
      #
      # @return [Array<Hash>] the functions, the slowest first
      def functions = native_functions.sort_by { |function| -function[:wall] }

      # The state of the protection: the values of {threads}, and:
      #
      # - +:on+: whether the protection is on
      # - +:core+: true, or why Ruby's own calls are not offloaded
      # - +:extensions+: the number of libraries whose calls are intercepted
      # - +:libc+: the number of libraries whose waits in libc are intercepted
      # - +:missing+: functions of Ruby that could not be intercepted, with +:function+, +:use+ and +:reason+
      # - +:reason+: why a part of the protection does not work on this platform, or nil
      #
      # @return [Hash]
      def status = Switch.status

      # @param threads [Integer] the new maximum number of offload threads
      # @raise [ArgumentError] unless it is from 1 to 100,000
      def thread_limit=(threads)
        Switch.thread_limit = threads
      end
    end
  end
end
