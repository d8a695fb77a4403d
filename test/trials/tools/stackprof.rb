# frozen_string_literal: true

require "stackprof"

# Profiles by signals of a timer, or by each allocation.
module TrialTool
  module_function

  def cpu = start(:cpu)

  def wall = start(:wall)

  def object = start(:object, 50)

  def start(mode, interval = 1000)
    StackProf.start(mode:, interval:)
    "started"
  end

  def stop
    StackProf.stop
    result = StackProf.results
    JSON.generate(samples: result[:samples], names: result[:frames].values.map { |frame| frame[:name] })
  end
end
