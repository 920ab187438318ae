// SPDX-License-Identifier: Apache-2.0

/// placeholder
public actor ImageServer {}
