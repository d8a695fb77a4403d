# frozen_string_literal: true

# @param task [Heddle::Task]
# @return [Fiber, nil] the one in which it runs, which users do not see
def fiber_of(task) = task.instance_variable_get(:@frame).fiber
