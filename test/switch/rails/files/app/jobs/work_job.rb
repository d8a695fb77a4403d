# frozen_string_literal: true

# Writes what it is like where jobs run.
class WorkJob < ApplicationJob
  def perform(path)
    File.write("#{path}.new", JSON.generate(isolation: ActiveSupport::IsolatedExecutionState.isolation_level,
                                            posts: Post.count >= 0, adapter: self.class.queue_adapter_name))
    File.rename("#{path}.new", path)
  end
end
