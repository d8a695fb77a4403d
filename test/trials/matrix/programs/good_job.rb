# frozen_string_literal: true

require_relative "../rails_app"
require "good_job"

# What the jobs have done.
DONE = Queue.new

migration = "lib/generators/good_job/templates/install/migrations/create_good_jobs.rb.erb"
rails_application(schema: migration_of("good_job", migration)) do |config|
  config.active_job.queue_adapter = :good_job
  config.good_job.execution_mode = :external
end

# Notes its number.
class Work < ActiveJob::Base
  def perform(number) = DONE << number
end

clients { |number| 5.times { |index| Work.perform_later((number * 10) + index) } }
numbers = (0...CLIENTS).flat_map { |n| Array.new(5) { |index| (n * 10) + index } }
proves("40 jobs of 8 tasks are in the queue", GoodJob::Job.count == 40)
clients { GoodJob.perform_inline }
done = Array.new(DONE.size) { DONE.pop }
proves("8 tasks perform them at once, each job once", done.sort == numbers)
