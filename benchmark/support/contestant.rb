# frozen_string_literal: true

module Bench
  # One way to run concurrent Ruby. The base class is what every implementation of the Fiber scheduler interface has
  # in common; a subclass says what to load and what to create.
  class Contestant
    # @return [Array<Contestant>] one for each backend, where a library has several
    def self.variants = [new]

    # Raised in the child when the contestant can't run here, with the reason.
    class Unavailable < StandardError; end

    # @return [String] the word for --contestants
    def key = raise(NotImplementedError)

    # @return [String] the heading of its column
    def label = raise(NotImplementedError)

    # @return [Symbol] :peer, :heddle, or :baseline for what is no rival but says what concurrency buys
    def role = :peer

    # @return [Hash] environment variables of its children
    def environment = {}

    # Loads the library. Runs in the child.
    def prepare = raise(NotImplementedError)

    # @return [String] version, and the backend where it has several. After `prepare`.
    def version = raise(NotImplementedError)

    # @return [Object] a new scheduler
    def scheduler = raise(NotImplementedError)

    # Runs the block as the first fiber, and the loop until every fiber has ended.
    def run(&block)
      failure = nil
      Fiber.set_scheduler(scheduler)
      Fiber.schedule do
        yield
      rescue Exception => e
        failure = e
      end
      finish
      raise failure if failure
    end

    # Starts a concurrent piece of work. Within `run`.
    def spawn(&) = Fiber.schedule(&)

    # The same for work that never waits.
    def spawn_brief(&) = spawn(&)

    # @return [Object, nil] a new queue of the library's own that answers push and pop, nil where it has none
    def own_queue = nil

    private

    def finish = Fiber.set_scheduler(nil)
  end
end
