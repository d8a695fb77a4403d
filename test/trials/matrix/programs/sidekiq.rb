# frozen_string_literal: true

require "sidekiq"

Sidekiq.configure_client { |config| config.redis = { url: "unix://#{ENV.fetch("MATRIX_REDIS")}" } }

# Never performed here.
class Work
  include Sidekiq::Job

  def perform(number) = number
end

Sidekiq.redis { |redis| redis.call("DEL", "queue:default") }
clients { |number| 125.times { |index| Work.perform_async((number * 1_000) + index) } }
jobs = Sidekiq.redis { |redis| redis.call("LRANGE", "queue:default", 0, -1) }
numbers = jobs.map { |job| Sidekiq.load_json(job)["args"].first }
proves("1,000 jobs of 8 tasks are in the queue, once each", numbers.uniq.size == 1_000 && numbers.size == 1_000)
