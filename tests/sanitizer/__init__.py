"""Generated calls of native operators under AddressSanitizer and UndefinedBehaviorSanitizer.

``python -m tests.sanitizer`` (``make sanitize``) builds the NumPy binding, the adapters of PyTorch and TensorFlow and
the operators with both sanitizers, and calls them with odd inputs. Each call has to be right or refused with an
``OperatorError``; a report of a sanitizer, or a crash, fails the job. It runs apart from the tests: everything is
compiled anew the first time, and each framework runs in a process of its own.

``__main__.py`` and ``job.py`` are the job, ``child.py`` is what runs under the sanitizers, ``calls.py`` what is
generated and checked, ``operators.py`` what is called, and ``*_target.py`` how each framework is called.
"""
