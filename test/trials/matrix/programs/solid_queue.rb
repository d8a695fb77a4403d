# frozen_string_literal: true

require_relative "../rails_app"
require "solid_queue"

# Jobs that run, and what lets them end.
RUNNING = Queue.new
GATE = Queue.new

CONFIGURATION = File.join(Dir.mktmpdir, "queue.yml")
File.write(CONFIGURATION, { "workers" => [{ "queues" => "*", "fibers" => CLIENTS }] }.to_yaml)
schema = schema_of("solid_queue", "lib/generators/solid_queue/install/templates/db/queue_schema.rb")
rails_application(schema:) do |config|
  config.active_job.queue_adapter = :solid_queue
  config.solid_queue.logger = Logger.new(nil)
end

# Runs until all do.
class Work < ActiveJob::Base
  def perform(number)
    RUNNING << number
    GATE.pop
  end
end

# The worker's fibers run on a reactor of async's, in a thread of the process whose other thread is Heddle's loop.
supervisor = SolidQueue::Supervisor.start(mode: :async, standalone: false, config_file: CONFIGURATION)
running = Heddle.run do
  Heddle.map(0...CLIENTS) { |number| Work.perform_later(number) }
  numbers = Array.new(CLIENTS) { RUNNING.pop }
  CLIENTS.times { GATE << true }
  sleep 0.01 until SolidQueue::Job.finished.count == CLIENTS
  numbers
end
proves("8 jobs of 8 tasks run at once, in fibers of a worker (`fibers: 8`) in the same process",
       running.sort == [*0...CLIENTS])
supervisor.stop
