# frozen_string_literal: true

require "heddle/protection"
require "heddle/scheduler"
require "heddle/scheduler/blocking_operations"
require "heddle/offload/libraries"
require "heddle/offload/starting"

module Heddle
  # The protection `:offload`: a native call that releases Ruby's lock blocks only its own fiber.
  #
  # A native call blocks its thread, and with it every fiber of the loop. Here another thread runs it while the loop
  # continues: Heddle intercepts the calls to Ruby's +rb_nogvl+ and similar functions, by the import tables of the
  # loaded libraries (Linux; see docs/offload.md). That applies only to fibers of Heddle's loops, and to libraries that
  # are known good, judged safe by the extension, or allowed by the user.
  module Offload
    # Ruby's own methods that hold a lock of the whole thread: if another fiber loaded the same file meanwhile, Ruby
    # would report a circular require.
    LOADING = %w[require require_relative load autoload].freeze

    # The entry of {status} for Ruby's own calls until the protection is switched on for the first time.
    NOT_TRIED = "not tried yet"

    autoload :ThreadLimit, "heddle/offload/thread_limit"
    autoload :InPlace, "heddle/offload/in_place"

    # The prefix of an allowed library if only its waits in libc are offloaded.
    WAITS = "libc:"

    private_constant :LOADING, :NOT_TRIED, :WAITS

    # The protection :offload. Other methods are in C.
    #
    # @api private
    module Switch
      class << self
        # Switches it on: see {Heddle.enable}.
        #
        # @param allow [Array<String>] prefixes of the file names of further libraries whose calls may run on any
        #   thread. The variable HEDDLE_OFFLOAD_ALLOW adds more, separated by commas. A later call adds to them and
        #   removes none. Read docs/offload.md first: it lists things that such a library must not do
        # @param deny [Array<String>] further libraries whose calls are not offloaded, and those of HEDDLE_OFFLOAD_DENY;
        #   a library that is both allowed and denied is denied
        # @param libc [Array<String>] further libraries whose waits in libc (poll, select, sleep, connect, recv) are
        #   offloaded though they hold Ruby's lock: see docs/offload.md for the demands on such a library
        # @param threads [Integer, nil] the maximum number of offload threads; further calls are queued. nil keeps the
        #   current number, which is {ThreadLimit.default} at first
        # @raise [ArgumentError] for a library that must not be hooked, or an invalid number of threads
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
          unless threads.is_a?(Integer) && threads.between?(1, 100_000)
            raise ArgumentError, "the number of offload threads is #{threads.inspect}, but must be from 1 to 100000"
          end

          limit_threads(@thread_limit = threads)
        end

        # Sets the default limit of threads. Has no effect on a limit that the program has set.
        # @param workers [Integer] processes that share the container's limit of tasks
        def share_threads(workers)
          @share = ThreadLimit.default(workers:)
          limit_threads(@thread_limit || @share)
        end

        # Adds libraries. While the protection is off, they have an effect when it is switched on.
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

        # Calls from now on run as in plain Ruby. Running calls end as they have begun.
        def disable = switch(false)

        # @see Offload.status
        def status
          { on: enabled?, core: core || true, extensions: library_count, libc: Offload.libc_libraries.size,
            missing: missing_functions.map { |function, use, reason| { function:, use:, reason: } }, reason:,
            **Offload.threads }
        end

        # @return [Array<InPlace>] the functions that have blocked a loop in place since the last call, each once
        def take_in_place = take_blocking.map { |function, seconds| InPlace.new(function:, seconds:) }

        # Native calls inside the block stay on the loop's thread.
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

        # Called from C, once a process, on a fiber of the loop that must not wait.
        def threads_used_up(scheduler)
          limit = Offload.threads[:limit]
          scheduler.spawn(-> { Events.report(:offload_threads_exhausted, limit:) })
        end

        # Called from C, once, to see where Fiddle keeps the function that it calls. This call is not offloaded.
        def call_probe = Fiddle::Function.new(probe, [], Fiddle::TYPE_VOID).call

        # Checks how this Ruby passes calls on descriptors, which versions may change. Uses a pipe, which needs no file.
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

          "only #{"what Ruby hands to the scheduler and " if RUBY_VERSION >= "3.4"}Heddle.offload { } is offloaded: " \
            "#{core}"
        end

        def refuse(libraries)
          raise ArgumentError, "a library's name is empty" if libraries.any?(&:empty?)

          bad = libraries.find { |name| NEVER_LIBC.any? { |never| name.start_with?(never) } } or return
          raise ArgumentError, "#{bad} can't be offloaded: the library holds locks while it waits"
        end

        def environment(name) = ENV.fetch(name, "").split(",").map(&:strip).reject(&:empty?)
      end

      @allow = []
      @deny = DENIED
      @libc = LIBC
      Protection.register(:offload, self)
    end

    class << self
      # The facts about each native function that fibers have called:
      #
      # - +:library+, +:function+ (its symbol or place in the file), +:method+ (the Ruby method that called it first)
      # - +:calls+, and how many of them were +:offloaded+
      # - +:wall+ (seconds, an average that falls slowly), +:cpu+ (the part of it that was spent computing)
      # - +:class+ (+:waits+, +:computes+, +:quick+, +:in_place+ or +:denied+), +:reason+ (why it is in place, or nil)
      # - +:trust+ (the class of its library, see {libraries})
      #
      # @return [Array<Hash>] the functions that take most time first
      def functions = native_functions.sort_by { |function| -function[:wall] }

      # The state of the protection, with the result of {threads} and:
      #
      # - +:on+; +:core+: true, or why Ruby's own calls are not offloaded
      # - the numbers of libraries whose calls (+:extensions+), or whose waits in libc (+:libc+), are offloaded
      # - +:missing+: Ruby's functions that are not intercepted though others are, as +:function+, +:use+ and +:reason+
      # - +:reason+: why a part of the protection is missing here, or nil
      #
      # @return [Hash]
      def status = Switch.status

      # @param threads [Integer] the maximum number of offload threads from now on
      # @raise [ArgumentError] unless it is 1 or more
      def thread_limit=(threads)
        Switch.thread_limit = threads
      end
    end
  end
end
