# frozen_string_literal: true

# Which memory allocator the process has.
module TrialTool
  module_function

  def allocator = File.read("/proc/self/maps")[/jemalloc/] || "libc"
end
