# frozen_string_literal: true

require "monitor"

# Settings that are read again when they are old, by the first request that needs them; the others wait for it.
class SettingsStore
  include MonitorMixin

  def initialize(source)
    super()
    @source = source
  end

  def value
    synchronize do # culprit: monitor waiter
      read if @read.nil? || @read < Process.clock_gettime(Process::CLOCK_MONOTONIC) - 0.2
      @value
    end
  end

  private

  def read
    @value = @source.rate
    @read = Process.clock_gettime(Process::CLOCK_MONOTONIC)
  end
end
