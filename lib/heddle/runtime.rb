# frozen_string_literal: true

require "heddle/autoloads"
require "heddle/version"
require "heddle/account"
require "heddle/request"
require "heddle/concurrency"
require "heddle/protection"
require "heddle/events"
# Loaded now: the extension defines only a part of these classes, which an autoload can't complete. The same is true of
# heddle/http and heddle/rack, which the server loads.
require "heddle/net/scheduler_resolver"
require "heddle/pubsub"
require "heddle/net"

# A fiber runtime for Ruby, and a Rack server on it. This module has the few methods that programs use. Heddle loads
# only the files of methods that are called.
#
#     Heddle.run do
#       page = Heddle.async { Net::HTTP.get(URI("http://localhost:9292/")) }
#       sleep 1               # both at the same time
#       puts page.value
#     end
module Heddle
  Autoloads.add(self, "heddle", %w[
    adaptations cable callback_report cli databases event_stream handoff live load_failure name_suggestion preemption
    printable_text rails server stall stalls watch_thread web_socket working_folder
  ])
  Autoloads.add(self, "heddle/http", %w[client_gone_error])
  Autoloads.add(self, "heddle/concurrency", %w[
    barrier channel condition pool promise scope semaphore task task_tree timeout_error
  ])

  # Implements the methods below, which load its files when they are first called.
  module Concurrency
    Autoloads.add(self, "heddle/concurrency", %w[
      context deadline every inheritance map race root scope_frame shield supervisor task_frame timers tree_signal
    ])
  end

  # Upper layers, which the lower ones must not load. Shareable, because other Ractors call them, too.
  Concurrency.drivers = Ractor.make_shareable(-> { Databases })
  PubSub::Route.publisher = Ractor.make_shareable(
    ->(socket, topic, data) { Server::Control::Publisher.publish(socket, topic, data) }
  )

  class << self
    # Runs the block in an event loop, and returns its value when it and every task that was started in it have ended.
    # Starts a loop if this thread has none; inside a loop it is a {scope}, and starts no second one.
    #
    # Ctrl-C cancels all tasks, and is raised here when they have cleaned up; a second one is raised at once.
    #
    # @param selector [Symbol, nil] `:io_uring`, `:epoll`, `:kqueue` or `:select`; nil: the one named by the
    #   environment variable HEDDLE_SELECTOR, else the best one that the machine allows. Threads other than the main one
    #   prefer epoll, which is cheaper for a loop that lives for one request. Inside a loop this is ignored.
    # @param name [String, nil] its name in the task tree
    # @param cancel_grace [Numeric, nil] seconds that a cancelled task may take to clean up; nil: 5
    # @return what the block returns
    # @raise what the block, or the first task that failed, has raised
    # @raise [DeadlockError] when every task waits for another
    # @raise [NoLoopError] when this thread has a scheduler of another kind
    def run(selector: nil, name: nil, cancel_grace: nil, &block)
      raise ArgumentError, "Heddle.run needs a block to run in the loop" unless block

      Databases.install if defined?(::ActiveRecord) || defined?(::Sequel)
      Adaptations.load_async if defined?(::Async::Task) # the program uses the async gem
      if Fiber.current_scheduler
        scope(cancel_grace: cancel_grace) { block.call }
      elsif (scheduler = Fiber.scheduler).is_a?(Scheduler) # set by hand, and not running yet
        Concurrency::Root.new(scheduler, name, cancel_grace, block).run_loop
      else
        raise NoLoopError, Concurrency.no_loop("Heddle.run") if scheduler

        scheduler = Scheduler.new(selector: selector || selector_of_thread)
        Concurrency::TreeSignal.during(scheduler) { Concurrency::Root.run(scheduler, name, cancel_grace, block) }
      end
    end

    # @return [Request, nil] the request that the calling fiber serves, also in a task that it has started; nil outside
    #   of the server, and where requests have no account
    def current_request
      account = Account.current
      Request.new(account) if account
    end

    # Starts a task: the block runs concurrently with what follows, in a fiber of its own. It belongs to the innermost
    # scope that is open here, and that scope doesn't end before it.
    #
    # @param (see Scope#async)
    # @return [Task]
    # @raise [NoLoopError] outside a loop
    def async(name: nil, background: false, inherit: nil, &block)
      scheduler = Fiber.scheduler
      raise NoLoopError, Concurrency.no_loop("Heddle.async") unless scheduler.is_a?(Scheduler)

      scope = Concurrency::Context.of(scheduler).scope
      scope.async(name: name, background: background, inherit: inherit, &block).handle
    end

    # Runs the block, and ends when every task that was started in it has ended. The first one that fails cancels the
    # others and the block, and its error is raised here.
    #
    # @param cancel_grace [Numeric, nil] seconds that its cancelled tasks may take to clean up; nil: as outside
    # @yield [Scope]
    # @return what the block returns; nil when the scope was cancelled with {Scope#cancel}
    # @raise [NoLoopError] outside a loop
    def scope(cancel_grace: nil, &block)
      Concurrency::ScopeFrame.new(current_task("Heddle.scope"), cancel_grace).run(&block)
    end

    # A scope in which a task that fails cancels no other: the others continue. `on_failure` is called with its error.
    # Without `on_failure` the error is reported on $stderr, unless a task waits for the failed one: then the waiting
    # task gets it. An error of the block itself or of `on_failure`, and an exception that is not a StandardError, end
    # the scope as in {scope}.
    #
    # @param on_failure [#call, nil] called with the task and its error, at once, and must not wait
    # @param cancel_grace (see scope)
    # @yield [Scope]
    # @return what the block returns
    def supervise(on_failure: nil, cancel_grace: nil, &block)
      Concurrency::Supervisor.new(current_task("Heddle.supervise"), on_failure, cancel_grace).run(&block)
    end

    # Limits the time of the block, and of the tasks that are started in it. The limit takes effect at waits; code that
    # computes is not interrupted. It cancels the block: {Cancelled} is raised inside, which no `rescue =>` catches, and
    # the clean-up may wait. Then this call raises TimeoutError. Limits may be nested.
    #
    # @param seconds [Numeric, nil] nil: no limit. 0 or less: the first wait raises.
    # @yield [Scope]
    # @return what the block returns
    # @raise [TimeoutError]
    # @raise [NoLoopError] outside a loop
    def timeout(seconds, &block)
      return scope(&block) if seconds.nil?
      if !seconds.is_a?(Numeric) || (seconds.is_a?(Float) && seconds.nan?)
        raise ArgumentError, "the time limit is #{seconds.inspect}, but must be a number of seconds, or nil"
      end

      Concurrency::Deadline.new(current_task("Heddle.timeout"), seconds).run(&block)
    end

    # Runs a block to its end, for work that must not be left half done. A cancellation of a task, a scope or a request
    # around the block, or the end of a time limit, is deferred to the next wait after the block. The same holds for
    # tasks that are started in the block. Outside of a loop the block is just run.
    #
    # A cancellation from inside the block, such as a time limit there, is not deferred. `Timeout.timeout` around it,
    # the end of a server's `stop_timeout`, and the `cancel_grace` of a task that cleans up already, interrupt the
    # block, too.
    #
    #     Heddle.shield { charge(card) && record(charge) }
    #
    # @yield [Scope]
    # @return what the block returns
    def shield(&block)
      raise ArgumentError, "Heddle.shield needs a block that must run to its end" unless block
      return yield unless Fiber.current_scheduler.is_a?(Scheduler)

      Concurrency::Shield.new(current_task("Heddle.shield")).run(&block)
    end

    # Calls the block for every item, concurrently, and returns the results in the order of the items. The first failure
    # cancels the others and is raised.
    #
    # @param enum [#each] may be lazy or endless if a limit is given: then items are taken only when they can run
    # @param limit [Integer, nil] how many run at once at most; nil: all
    # @return [Array]
    def map(enum, limit: nil, &block)
      raise ArgumentError, "Heddle.map needs a block that takes each item" unless block

      scope { |scope| Concurrency::Map.new(scope, limit).each_of(enum, &block) }
    end

    # Runs several contenders: the first one that ends decides. Its value is returned, or its error raised, and the
    # others are cancelled. Returns when all of them have ended.
    #
    #     Heddle.race(mirrors, ignore: [SocketError]) { |mirror| fetch(mirror) }
    #
    # @param contenders [Enumerable] each is passed to the block; without a block, each is called
    # @param ignore [Array<Class>] a contender that fails with one of these errors drops out. If all drop out, the first
    #   error is raised, with the others attached. `[StandardError]`: the first success wins.
    # @return what the winner's block returned
    def race(contenders, ignore: [], &block)
      race = nil
      scope do |scope|
        race = Concurrency::Race.new(scope, ignore)
        race.start_all(contenders, block)
      end
      race.winner
    end

    # Starts a task that calls the block at an interval, until it is cancelled. As with {async} the innermost open scope
    # waits for it; `background: true` ends it with the scope. It doesn't drift; a tick that comes while the block still
    # runs is skipped.
    #
    #     report = Heddle.every(0.5, background: true) { puts queue.size }
    #     report.cancel
    #
    # @param interval [Numeric] seconds
    # @param (see Scope#async)
    # @yield [tick] the number of the tick since the start, the first is 1; skipped ones are counted
    # @return [Task]
    # @raise [NoLoopError] outside a loop
    def every(interval, name: nil, background: false, &block)
      raise ArgumentError, "Heddle.every needs a block to call at each interval" unless block

      ticks = Concurrency::Every.new(interval)
      async(name: name || Concurrency.place(block), background: background) { ticks.each(&block) }
    end

    # Runs the block on another thread, while only the calling fiber waits: for native code that holds Ruby's lock for
    # parts of its work only, or that offloading can't reach. Outside of a loop the block is just run.
    #
    # The block must not use what belongs to the calling thread or fiber: Thread.current and Fiber.current are others.
    # When an exception is raised in the fiber meanwhile, the block is interrupted where it waits in a system call.
    #
    # @return what the block returns
    def offload(&block)
      raise ArgumentError, "Heddle.offload needs a block to run on another thread" unless block

      scheduler = Fiber.current_scheduler
      scheduler.is_a?(Scheduler) ? scheduler.thread_pool.run(&block) : yield
    end

    # Runs the block with native calls as in plain Ruby: they run on this thread, and block it and the loop. For native
    # code that must not leave its thread, and for calls that are known to be quick.
    #
    # @return what the block returns
    def without_offload(&block)
      raise ArgumentError, "Heddle.without_offload needs a block to run on this thread" unless block

      require "heddle/offload"
      Offload::Switch.inline(&block)
    end

    # The tasks of this thread's loop: names, states, and where each waits. Print it: `puts Heddle.task_tree`.
    #
    # @param lines [Integer, nil] lines of backtrace a task at most; nil: all
    # @return [TaskTree]
    # @raise [NoLoopError] when this thread has no loop
    def task_tree(lines: nil)
      scheduler = Fiber.scheduler
      raise NoLoopError, Concurrency.no_loop("Heddle.task_tree") unless scheduler.is_a?(Scheduler)

      TaskTree.new(Concurrency::Context.of(scheduler), lines: lines)
    end

    # The load of the server in which this code runs, from any of its workers, like Puma.stats. Outside of a server,
    # `workers` is 0. In mode ractor it can be called in the main Ractor only.
    #
    #     Heddle.stats # => {mode: :fiber, workers: 2, running: 3, queued: 0, connections: 9, requests: 120,
    #                  #     capacity: nil, per_worker: [{worker: 0, pid: 4709, running: 2, …}, …]}
    #
    # @return [Hash{Symbol => Object}] see docs/observability.md
    def stats = Server::LoadReport.to_h

    # While the block computes, no other fiber of this loop runs, even with preemption; while it waits, others run. For
    # code that changes several things together and takes no lock for it.
    #
    # @return what the block returns
    def without_preemption(&block)
      scheduler = Fiber.scheduler
      scheduler.is_a?(Scheduler) ? scheduler.without_preemption(&block) : yield
    end

    # Loads all files of the runtime. A Ractor of Ruby 3.3 can't load files: call this before the first Ractor.
    #
    # @return [nil]
    def eager_load
      [self, Concurrency].each do |namespace|
        namespace.constants.each do |name|
          path = namespace.autoload?(name)
          namespace.const_get(name) if path&.match?(%r{\Aheddle/(?:concurrency/|scheduler|databases)})
        end
      end
      nil
    end

    private

    # :stopdoc:

    # In a thread other than the main one, such as Puma's, a loop may exist only for a request. There a ring costs more
    # than it saves (CPU of an empty `Heddle.run { }`: 186 µs with io_uring, 57 with epoll).
    def selector_of_thread
      return Selector.best if Thread.current == Thread.main || ENV.key?(Selector::VARIABLE)

      Selector.unavailable_reason(:epoll) || !Selector.built.include?(:epoll) ? Selector.best : :epoll
    end

    def current_task(what)
      Concurrency::Context.of(Concurrency.scheduler!(what)).task!
    end
  end

  # The part that needs no server. At the end of the file, because RDoc attributes what follows an endless method to
  # this module.
  module HTTP
    autoload :Client, "heddle/http/client"

    # A GET request with the process's own {Client}, which has the default options.
    #
    # @param (see Client#get)
    # @return [Client::Response]
    # @raise [Client::Error]
    def self.get(url, ...) = Client.default.get(url, ...)
  end
end
