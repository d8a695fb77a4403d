# frozen_string_literal: true

require "vernier"

# Profiles by a native thread that signals Ruby's, and follows the GVL and collections by Ruby's events.
module TrialTool
  module_function

  def start
    Vernier.start_profile(mode: :wall, interval: 500, allocation_interval: 100)
    "started"
  end

  def stop
    result = Vernier.stop_profile
    Dir.mktmpdir do |folder|
      file = File.join(folder, "profile.json")
      result.write(out: file)
      File.read(file)
    end
  end
end
